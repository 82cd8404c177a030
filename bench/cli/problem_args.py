"""Arguments that several commands share, and those of a problem."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.core.card import Card
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.options import parse_options
from fedarena.core.rng import LARGEST_SEED, is_secret
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import DEFAULTS, read_integer, usual_problem

if TYPE_CHECKING:
    from fedarena.problem.spec import ProblemSpec
    from fedarena.reproduce.machine import Machine


GROUPS = ("defense", "attack", "model", "partition", "training")
NAMED = ("dataset", "model", "partition", "clients", "corrupted", "corrupted_data", "assumed_corrupted")
"""The settings of a problem that have a flag of their own."""
SHORTHANDS = ("rounds", "batch_size", "local_epochs", "participation", "client_memory")
"""Options of the schedule that have a flag of their own."""


def add_problem_arguments(parser: argparse.ArgumentParser) -> None:
    """--dataset, --model, --partition, --clients, --corrupted and its like, shorthands, --set, --data-dir."""
    group = parser.add_argument_group(
        "problem",
        "Defaults are the usual problem of the attack, the defense and the data set (`bench show NAME`), else the "
        "ones given here.",
    )
    group.add_argument("--dataset", help="data set (default: digits, embedded; see `bench data`)")
    group.add_argument("--model", help=f"model (default: {DEFAULTS['model']})")
    group.add_argument("--partition", help="how the data is split (default: iid)")
    group.add_argument("--clients", metavar="N", help="number of clients, corrupted ones included (default: 2)")
    group.add_argument(
        "--corrupted",
        metavar="N",
        help="how many of the clients poison (default: 0); where the attack only reads they are honest, and do not "
        "count in accuracies by client",
    )
    group.add_argument(
        "--corrupted-data",
        metavar="LAW",
        help="shard: the data are shared out among all clients; resampled: among the honest ones, and each "
        "corrupted client draws a shard of its own from the same data (default: shard)",
    )
    group.add_argument(
        "--assumed-corrupted",
        metavar="N",
        help="how many corrupted clients the server assumes (default: as many as there are)",
    )
    group.add_argument("--belief", dest="assumed_corrupted", help=argparse.SUPPRESS)  # the option's old name
    schedule = parse_options(Schedule, {}, "training")
    for name in SHORTHANDS:
        flag, default = f"--{name.replace('_', '-')}", getattr(schedule, name)
        help = f"{_help(name)} (default: {default})"
        group.add_argument(flag, dest=name, metavar="N", help=help)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="GROUP.OPTION=VALUE",
        help=f"any option of a method; groups: {', '.join(GROUPS)}, or a part by name, as in krum.NAME of "
        "--defense nnm+krum; `bench show NAME` lists them",
    )
    add_data_dir(group)
    add_plugin(group)


def read_settings(args: argparse.Namespace, parts: Sequence[Card] = ()) -> dict[str, dict[str, str]]:
    """`--set` and the schedule's shorthands, as text by group. Raises UserError.

    Args:
        parts: the methods that take part, each of which is a group by its name.
    """
    groups = (*GROUPS, *(card.name for card in parts))
    settings: dict[str, dict[str, str]] = {group: {} for group in groups}
    for item in args.set:
        path, equals, value = item.partition("=")
        group, dot, name = path.rpartition(".")
        if not equals or not dot or not name:
            raise UserError(f"option 'set' is '{item}', which is not GROUP.OPTION=VALUE, such as defense.ratio=0.5")
        if group not in settings:
            raise UserError(f"option 'set' names the group '{group}'{did_you_mean(group, groups)}")
        key = name.replace("-", "_")
        if settings[group].get(key, value) != value:
            raise UserError(f"option 'set' gives {group}.{key} as {settings[group][key]} and as {value}, allowed: once")
        settings[group][key] = value
    for name in SHORTHANDS:
        given = getattr(args, name)
        if given is None:
            continue
        if (other := settings["training"].get(name, given)) != given:
            flag = name.replace("_", "-")
            raise UserError(
                f"option '{flag}' is {given}, and option 'set' gives training.{name} as {other}, allowed: one of them"
            )
        settings["training"][name] = given
    return settings


def read_problem(
    args: argparse.Namespace, settings: Mapping[str, Mapping[str, str]], methods: Sequence[Card] = ()
) -> ProblemSpec:
    """The problem that the arguments name. Raises UserError.

    Args:
        methods: the methods whose usual problem replaces the defaults; later ones take precedence, and the data set
            above all.
    """
    named = {name: str(given) for name in NAMED if (given := getattr(args, name)) is not None}
    return usual_problem(named, settings, methods)


def read_words(text: str | None) -> tuple[str, ...] | None:
    """A comma-separated list, each word once; None when it is not given."""
    if text is None:
        return None
    return tuple(dict.fromkeys(w.strip() for w in text.split(",") if w.strip())) or (text,)


def read_seeds(text: str) -> tuple[int, ...]:
    """Distinct comma-separated integers from 0 to the largest seed that all libraries take. Raises UserError."""
    seeds = tuple(read_integer("seeds", part.strip(), 0) for part in text.split(",") if part.strip())
    if not seeds or len(set(seeds)) != len(seeds):
        raise UserError(f"option 'seeds' is '{text}', allowed: distinct integers such as 0,1,2")
    if max(seeds) > LARGEST_SEED:
        raise UserError(f"option 'seeds' has {max(seeds)}, allowed: 0 to {LARGEST_SEED}")
    return seeds


MOST_JOBS = 10_000
"""More worker processes than a cluster has cores."""


def read_jobs(text: str) -> int:
    """The number of worker processes. Raises UserError."""
    jobs = read_integer("jobs", text, 1)
    if jobs > MOST_JOBS:
        raise UserError(f"option 'jobs' is {jobs}, allowed: 1 to {MOST_JOBS}")
    return jobs


NO_SECRET = "none"


def read_secret(text: str | None) -> str | None:
    """The secret; empty where the run is to have none, None where nothing is said. Raises UserError."""
    if text is None or text == NO_SECRET:
        return None if text is None else ""
    if not is_secret(text):
        raise UserError(f"option 'secret' is '{text}', allowed: 32 digits from 0 to 9 and a to f, or {NO_SECRET}")
    return text


def data_dir(args: argparse.Namespace) -> Path | None:
    """--data-dir as a path. Raises UserError when it is not a folder."""
    if args.data_dir is None:
        return None
    path = Path(args.data_dir)
    if not path.is_dir():
        raise UserError(f"option 'data-dir' is {path}, which is not a folder")
    return path


def read_machine(args: argparse.Namespace) -> Machine:
    """--data-dir and --device. Raises UserError for a path that is no folder, or a device that this machine lacks."""
    from fedarena.reproduce.machine import Machine

    if args.device != "cpu":
        from fedarena.core.tensors import find_device

        find_device(args.device)
    return Machine(data_dir(args), args.device)


def _help(name: str) -> str:
    import dataclasses

    return str(next(f.metadata["help"] for f in dataclasses.fields(Schedule) if f.name == name))


def add_data_dir(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--data-dir", metavar="FOLDER", help="data files (default: $FEDARENA_DATA, then the cache)")


def add_device(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where to compute (default: cpu)")


def add_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def add_secret(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--secret",
        metavar="HEX",
        help="32 hexadecimal digits from which all randomness follows, beside the seed: those of a record repeat it "
        "(default: drawn where an attack of another package takes part, else none). With none an attack of another "
        "package meets the runs of a published board, and could rebuild them from their seeds",
    )


def add_plugin(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file with cards of your own methods (CONTRIBUTING, 'Adding a method'); may be repeated",
    )


def add_quiet(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress")
