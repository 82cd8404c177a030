"""A suite's plan: its trials with their keys, and why some cannot be run. The folder holds it as plan.json.

The plan shows that a folder is finished without loading a single method, and tells a leaderboard what is missing. It is
valid for the suite, package, method cards and data files that it was made from; if any of these changes, it is made
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena import __version__
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core import registry
from fedarena.core.card import KINDS
from fedarena.core.errors import UserError
from fedarena.core.files import digest, read_bytes, read_json, write_atomically
from fedarena.core.options import describe_options
from fedarena.core.text.numbers import plural
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS
from fedarena.datasets import load
from fedarena.records.json_schema import anything, both, each, either, fields, flag, named, text, whole
from fedarena.records.trial_key import KEY_LAYOUT
from fedarena.records.trial_place import TrialPlace
from fedarena.runs.suite.suite import Suite

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.spec import GroupSpec, MethodSpec
    from fedarena.problem.problem import Problem
    from fedarena.problem.spec import ProblemSpec
    from fedarena.runs.suite.trials import Trial

LAYOUT = 3


@dataclass(frozen=True, kw_only=True)
class Planned(TrialPlace):
    """A trial of a plan.

    Attributes:
        name: the name of its `fedarena.runs.suite.trials.Trial`.
        key: the key of the trial; empty if it cannot be run.
        shown: whether it is a cell of the board. counts: whether it counts in scores and ranks.
        refused: why it cannot be run; empty for most.
    """

    name: tuple[str, ...]
    key: str
    shown: bool
    counts: bool
    refused: str = ""


@dataclass(frozen=True)
class Plan:
    """The trials of a suite.

    Attributes:
        suite, title, about: the suite's name, title and purpose. digest: a hash of everything that the plan follows
            from.
        problems: the suite's problems, in its words. aside: the problems whose accuracy does not count as utility.
        secret: as in `fedarena.federation.spec.GroupSpec`; plan.json does not hold it (`fedarena.runs.suite.secret`).
    """

    suite: str
    title: str
    about: str
    digest: str
    seeds: tuple[int, ...]
    problems: dict[str, Any]
    aside: tuple[str, ...]
    trials: tuple[Planned, ...]
    secret: str = ""


def _threatened(trial: Any, where: str) -> None:
    """A trial whose attack, if it has one, somebody carries out in some form."""
    if trial["attack"] != "none" and not (trial["party"] and trial["form"]):
        raise ValueError(f"{where} has an attack, and lacks its party or its form")


_TRIAL_FIELDS = fields(
    {
        "name": each(text),
        **dict.fromkeys(("key", "problem", "defense", "attack"), text),
        **{name: either("", *known) for name, known in (("party", READERS), ("form", FORMS), ("knows", KNOWLEDGE))},
        "goal": either("", *GOAL_NAMES),
        "seed": whole,
        "shown": flag,
        "counts": flag,
    },
    {"refused": text},
    closed=True,
)
TRIAL = both(_TRIAL_FIELDS, _threatened)
PLAN = fields(
    {
        **dict.fromkeys(("suite", "title", "about", "digest"), text),
        "seeds": each(whole),
        "problems": named(anything),
        "aside": each(text),
        "trials": each(TRIAL),
    },
    closed=True,
)
"""The shape of plan.json, without the number of its layout."""


def require_trials(plan: Plan) -> None:
    """Raise UserError where none of the trials can be run: nothing would be measured, now or later."""
    why = list(dict.fromkeys(t.refused for t in plan.trials))
    if why and "" not in why:
        more = f" (and {plural(len(why) - 1, 'other reason')}: see bench suite plan)" if len(why) > 1 else ""
        raise UserError(
            f"suite {plan.suite}: none of its {plural(len(plan.trials), 'trial')} can be run: {why[0]}{more}"
        )


def digest_of(suite: Suite, seeds: Sequence[int], data_dir: Path | None, secret: str = "") -> str:
    """A hash of the suite, the package, every card, the releases of libraries that the suite names, and size and time
    of every data file. Loads no method."""
    cards = []
    for kind in KINDS:
        methods = registry.registries()[kind]
        for name in methods.names():
            try:
                card = methods.card(name)
            except UserError:
                continue
            options = [asdict(option) for option in describe_options(card.options)]
            cards.append([kind, name, methods.entry(name).origin, card.version, card.form, list(card.usual), options])
    files = []
    for folder in (data_dir, os.environ.get("FEDARENA_DATA")):
        if folder is not None and Path(folder).is_dir():
            paths = sorted(p for p in Path(folder).iterdir() if p.is_file())
            files.append([str(folder), [[p.name, p.stat().st_size, p.stat().st_mtime_ns] for p in paths]])
    source = [LAYOUT, KEY_LAYOUT, __version__, suite.name, suite.text, list(seeds), repr(cards), files]
    source += registry.releases_in(suite.text)
    return digest([*source, secret] if secret else source)


def read_plan(folder: Path) -> Plan | None:
    """The plan of a folder; None where there is none that can be read."""
    try:
        content: Any = read_json(read_bytes(folder / "plan.json"))
        if content.pop("plan") != LAYOUT:
            return None
        PLAN(content, "")
        trials = tuple(Planned(**{**t, "name": tuple(t["name"])}) for t in content.pop("trials"))
        return Plan(**{**content, "seeds": tuple(content["seeds"]), "aside": tuple(content["aside"])}, trials=trials)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_plan(plan: Plan, folder: Path) -> None:
    """Write the plan atomically. Raises UserError for a folder that cannot be written."""
    content = {name: value for name, value in asdict(plan).items() if name != "secret"}
    write_atomically(folder / "plan.json", json.dumps({"plan": LAYOUT, **content}, indent=1) + "\n")


def make_plan(
    suite: Suite,
    seeds: Sequence[int],
    data_dir: Path | None,
    trials: Sequence[Trial],
    progress: Callable[[float, str], object] = lambda share, text: None,
) -> Plan:
    """The plan of these trials (`fedarena.runs.suite.trials.trials_of`). Builds every problem once.

    Raises:
        UserError: a data set is missing.
    """
    keys = _keys(trials)
    refused = _refusals(trials, progress)
    secret = next((trial.spec.secret for trial in trials), "")
    return Plan(
        suite=suite.name,
        title=suite.title,
        about=suite.about,
        digest=digest_of(suite, seeds, data_dir, secret),
        seeds=tuple(seeds),
        problems={name: {**table.named, **table.settings} for name, table in suite.problems.items()},
        aside=tuple(name for name, table in suite.problems.items() if not table.utility),
        trials=tuple(_planned(trial, keys[trial.name], refused.get(trial.name, "")) for trial in trials),
        secret=secret,
    )


def _planned(trial: Trial, key: str, refused: str) -> Planned:
    """A trial in the form of the plan."""
    from fedarena.records.record_of import goal_of

    threat, spec = trial.threat, trial.spec
    return Planned(
        name=trial.name,
        key="" if refused else key,
        problem=trial.problem,
        defense=spec.defense.label,
        attack=spec.attack.label if spec.attack else "none",
        party=threat.party if threat else "",
        form=threat.form if threat else "",
        knows=(threat.knows or "") if threat else "",
        goal=goal_of(spec.attack),
        seed=spec.seed,
        shown=trial.shown,
        counts=trial.counts,
        refused=refused,
    )


def _keys(trials: Sequence[Trial]) -> dict[tuple[str, ...], str]:
    from fedarena.records.record_of import identity_of
    from fedarena.records.trial_key import trial_key

    data: dict[str, Any] = {}
    for trial in trials:
        name = trial.spec.problem.dataset
        if name not in data:
            data[name] = load(name, trial.spec.data_dir).provenance
    return {t.name: trial_key(identity_of(t.spec, t.threat, data[t.spec.problem.dataset])) for t in trials}


def _refusals(trials: Sequence[Trial], progress: Callable[[float, str], object]) -> dict[tuple[str, ...], str]:
    """The reasons why some trials cannot be run.

    Trials are checked on one seed, so that another seed may still be refused when its turn comes.
    """
    from fedarena import goals

    first = min((t.spec.seed for t in trials), default=0)
    specs = {trial.name: replace(trial.spec, seed=first, threats=(), probe=None) for trial in trials}
    # Problem by problem and defense by defense: data sets are large, and only one is held in memory at a time.
    order = sorted(dict.fromkeys(specs.values()), key=lambda s: (repr(s.problem), s.defense.label))
    tried: dict[GroupSpec, str] = {}
    held: tuple[ProblemSpec, MethodSpec, Problem, Defense] | None = None
    for i, spec in enumerate(order):
        try:
            if held is None or held[:2] != (spec.problem, spec.defense):
                held = (spec.problem, spec.defense, *_built(spec))
            if spec.attack is not None:
                goals.of_attack(spec.attack).require_runnable(spec.problem, held[2], held[3], spec.attack)
            tried[spec] = ""
        except UserError as error:
            tried[spec] = str(error)
        progress((i + 1) / len(order), spec.defense.label)
    return {name: tried[spec] for name, spec in specs.items() if tried[spec]}


def _built(spec: GroupSpec) -> tuple[Problem, Defense]:
    from fedarena.federation import compose
    from fedarena.problem.problem import build
    from fedarena.runs.pairing import require_summable

    problem = build(spec.problem, spec.root, spec.data_dir, spec.device, compose.auxiliary(spec.defense))
    protocol = compose.make_defense(spec.defense, problem.task)
    require_summable(protocol, problem, spec.root)
    return problem, protocol
