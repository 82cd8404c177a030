"""Refuses a suite with a problem on which a federation is of no use, so that utility and integrity measure nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import plural
from fedarena.goals.metrics.gain import LEAST_GAIN, gained, mean_gain
from fedarena.records.schema import Record
from fedarena.runs.suite.plan import Plan, Planned


def is_reference(trial: Planned) -> bool:
    """Whether the trial is a clean run of FedAvg on a problem as it stands."""
    return trial.defense == BASELINE and trial.clean and trial.shown


def require_gain(plan: Plan, records_of: Callable[[str], Sequence[Record]]) -> None:
    """Raise UserError for a problem on which FedAvg gains less than `LEAST_GAIN` over not federating.

    This concerns problems whose accuracy counts as utility and those with poisoning attacks that count. A problem
    whose runs were not all measured is passed over.

    Args:
        records_of: key of a trial → its records.
    """
    counting = [t for t in plan.trials if t.counts and t.attack != "none"]
    for name in plan.problems:
        of_problem = [t for t in counting if t.problem == name]
        if not of_problem or (name in plan.aside and not any(t.knows for t in of_problem)):
            continue
        runs = [records_of(t.key) for t in plan.trials if t.problem == name and is_reference(t) and not t.refused]
        if runs and all(runs):
            _require_gain(plan, name, [records[0] for records in runs])


def _require_gain(plan: Plan, name: str, records: Sequence[Record]) -> None:
    utilities = [r["utility"] for r in records]
    known = mean_gain(utilities)
    if known is None or gained(*known):
        return
    alone, chance = fmean(u["references"]["local_only"] for u in utilities), fmean(u["chance"] for u in utilities)
    raise UserError(
        f"suite {plan.suite}: problem {name} measures nothing: FedAvg reaches {known[0]:.3f}, clients that train alone "
        f"{alone:.3f}, a constant answer {chance:.3f} (mean of {plural(len(records), 'seed')}); allowed: a gain of "
        f"{LEAST_GAIN:g} or more. Give clients fewer or less alike samples, or set utility = false and leave out its "
        "poisoning attacks"
    )
