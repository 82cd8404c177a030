"""How long the rest of a suite may take, judged by what was measured in the folder, else by what the suite says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

from fedarena.store import Store
from fedarena.suite.plan import Plan, Planned
from fedarena.suite.suite import Suite


@dataclass(frozen=True)
class Forecast:
    """CPU seconds that the missing trials may take.

    Attributes:
        seconds: None where nothing is known.
        missing: trials. measured: how many of them are judged by others of their kind in the folder.
        source: in words, where it is from.
    """

    seconds: float | None
    missing: int
    measured: int
    source: str


def forecast(suite: Suite, plan: Plan, store: Store) -> Forecast:
    """Each missing trial costs what the same attack on the same defense has cost on the same problem, else on any
    defense, else the mean; a federation that several trials read is counted once."""
    wanted = [t for t in plan.trials if not t.refused]
    missing = [t for t in wanted if not store.trial(t.key)]
    if not missing:
        return Forecast(0.0, 0, 0, "everything is there")
    spent = [(t, cost) for t in wanted if (cost := _spent(t, store)) is not None]
    if not spent:
        told = "the suite's own figure" if suite.minutes else "nothing measured here yet"
        whole = suite.minutes * 120 * len(plan.seeds) / len(suite.seeds) if suite.minutes else None
        return Forecast(whole, len(missing), 0, told)
    keys: list[Callable[[Planned], tuple[str, ...]]] = [
        lambda t: (t.problem, t.defense, t.attack),
        lambda t: (t.problem, t.attack),
        lambda t: (),
    ]
    tables = [_means(spent, key) for key in keys]
    total, measured = 0.0, 0
    for t in missing:
        for table, key in zip(tables, keys, strict=True):
            if key(t) in table:
                total += table[key(t)]
                measured += key is keys[0]
                break
    return Forecast(total, len(missing), measured, "what was measured in this folder")


def _spent(trial: Planned, store: Store) -> float | None:
    """CPU seconds of a trial: its attack's; of poisoned and honest runs the federation's."""
    records = store.trial(trial.key)
    if not records:
        return None
    attack = sum(r["cost"]["attack_seconds"] for r in records)
    own_run = bool(trial.knows) or trial.attack == "none"
    return float(attack + (records[0]["cost"]["seconds"] if own_run else 0.0))


def _means(
    spent: Iterable[tuple[Planned, float]], key: Callable[[Planned], tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for trial, cost in spent:
        found[key(trial)].append(cost)
    return {name: fmean(costs) for name, costs in found.items()}
