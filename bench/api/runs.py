"""What a command measures or lists, as a function: runs, suites, who sees what, methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.api.arguments import OBJECTS, listener_of, named_options, parsed_args, path_of, told_in_python
from fedarena.api.results import Records, Results
from fedarena.core.errors import UserError
from fedarena.core.registry import held_in

if TYPE_CHECKING:
    from pandas import DataFrame

    from fedarena.contracts.aggregator import Aggregator
    from fedarena.contracts.defense import Defense
    from fedarena.contracts.inference import Inference
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.contracts.secure_sum import SecureSum
    from fedarena.core.card import Card


@told_in_python()
def run(
    defense: str | type[Defense | Aggregator | SecureSum] | Card,
    attack: str | type[Inference | Poisoning] | Card,
    *,
    out: Any = None,  # of any type, since checkers hold values of `**{"attack.victims": 1}` to it
    progress: Any = False,
    **options: Any,
) -> Results:
    """Run a defense against an attack beside no defense, as `bench run` does.

    Args:
        defense, attack: names (`methods` lists them), or classes of your own. The options dataset and model take
            objects as well (`fedarena.runs.own_objects.name_of`). A run with objects has one process.
        out: a folder (str or Path) for the records and their pictures; None: nothing is written.
        progress: True: bars on stderr; a function in its place is called with the run (str), the share done (float),
            and what it is doing (str). What it raises ends the run.
        options: those of `bench run`: seeds, party, form, knows, dataset, model, partition, clients, rounds, jobs,
            save_transcript, …, and those of `--set` by their dotted names. Several values are a list.

    Raises:
        UserError: input that cannot run.
    """
    from fedarena.cli import run as command

    listener = listener_of(progress)
    folder = None if out is None else path_of("out", out)
    given = {"defense": defense, "attack": attack, **options}
    named = named_options(given)
    if named is not given or any(held_in(str(named.get(option, ""))) for option in OBJECTS):
        if options.get("jobs") not in (None, 1):
            raise UserError(f"option 'jobs' is {options['jobs']}, allowed with objects of your own: 1")
        named["jobs"] = 1
    args = parsed_args("run", [], named)
    pairing, groups = command.plan(args)
    jobs = command.jobs_of(args)

    def told(i: int, share: float, text: str) -> None:
        if listener is not None:
            listener(command.name_of(groups[i]), share, text)

    with command.progress_bars(groups, quiet=progress is not True) as bars:
        results = command.measure(groups, jobs, folder, bars if listener is None else told)
    records = tuple(record for result in results for record in result.records)
    return Results(records, pairing.defense.label, pairing.attack.label, tuple(results))


@told_in_python()
def run_suite(suite: str | Path, *, progress: bool | Callable[[float, str], object] = False, **options: Any) -> Records:
    """Measure what is missing of a suite in its folder, as `bench suite run` does, and return all its records.

    Args:
        suite: a name that `bench suite list` prints, or a .toml file.
        progress: True: a bar on stderr; a function in its place is called with the share of the trials that is done
            (float), and the trial that was done last (str). What it raises ends the run.
        options: those of `bench suite run`: seeds, out (default: runs/SUITE), jobs, data_dir, fresh, …

    Raises:
        UserError: a suite that cannot run.
    """
    from fedarena.cli import suite as command

    listener, quiet = listener_of(progress), [] if progress is True else ["--quiet"]
    args = parsed_args("suite", ["run", str(path_of("suite", suite)), *quiet], options)
    _, plan, _, outcome = command.measure(args, listener)
    outcome.store.refresh()
    return Records(tuple(r for t in plan.trials if not t.refused for r in outcome.store.trial(t.key)))


@told_in_python()
def explain(
    defense: str | type[Defense | Aggregator | SecureSum] | Card,
    attack: str | type[Inference | Poisoning] | Card,
    **options: Any,
) -> dict[str, Any]:
    """Who sees what, before anything runs, as `bench explain --json` prints it. Raises UserError."""
    from fedarena.cli.explain import facts

    named = named_options({"defense": defense, "attack": attack, **options})
    return facts(parsed_args("explain", [named.pop("defense"), named.pop("attack")], named))


def methods(kind: str | None = None, *, plugin: str | Path | Sequence[str | Path] | None = None) -> DataFrame:
    """The methods of one kind (defense, aggregator, secure, attack, dataset, model, partition) or of all.

    Args:
        plugin: files with cards of your own methods, which are known from now on.

    Raises:
        UserError: an unknown kind, or a file without cards.
    """
    from pandas import DataFrame

    from fedarena.cli.methods import rows_of

    rows = rows_of(parsed_args("list", [] if kind is None else [str(kind)], {"plugin": plugin}).kind)
    return DataFrame([{"kind": of, **row} for of, some in rows.items() for row in some])
