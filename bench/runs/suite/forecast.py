"""How long the rest of a suite may take, judged by the records of the folder, or else by the suite's own figure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.runs.suite.plan import Plan, Planned
from fedarena.runs.suite.suite import Suite


@dataclass(frozen=True)
class Forecast:
    """CPU seconds that the missing trials may take.

    Attributes:
        seconds: the estimate; None where nothing is known.
        missing: the number of missing trials. measured: how many of them are judged by the same trial on another seed.
        source: the source of the estimate, in words. own: whether it is the folder's records, which do not count shared
            work.
    """

    seconds: float | None
    missing: int
    measured: int
    source: str
    own: bool = False


class Costs:
    """What trials have cost, and an estimate of what other trials may cost.

    A trial costs what the same attack on the same defense has cost on the same problem. Failing that, a poisoned run
    costs what its clean run costs, times the factor that the attack has added to others. Any other trial costs the mean
    of the same attack, else of its kind (honest, poisoned, read), else of all trials. A federation that several trials
    read is counted once, with the clean run.
    """

    def __init__(self) -> None:
        self._spent: dict[tuple[str, ...], _Mean] = defaultdict(_Mean)
        self._poisoned: dict[tuple[str, ...], list[tuple[tuple[str, ...], float]]] = defaultdict(list)

    def add(self, trial: Planned, records: Sequence[Record]) -> float:
        """Learn from a trial. Returns the trial's own CPU seconds."""
        cost = float(sum(r["cost"]["attack_seconds"] for r in records))
        if _kind(trial) != "read":
            cost += float(records[0]["cost"]["seconds"])
        for key in (_exactly(trial), _attack(trial), (_kind(trial),), ()):
            self._spent[key].add(cost)
        if _kind(trial) == "poisoned":
            self._poisoned[_attack(trial)].append((_honest(trial), cost))
        return cost

    def is_known(self, trial: Planned) -> bool:
        """Whether the same trial has been measured on another seed."""
        return _exactly(trial) in self._spent

    def of(self, trial: Planned) -> float | None:
        """CPU seconds that a trial may cost; None where nothing is known."""
        if self.is_known(trial):
            return self._spent[_exactly(trial)].value
        if _kind(trial) == "poisoned" and _honest(trial) in self._spent:
            return self._spent[_honest(trial)].value * self._added(trial)
        for key in (_attack(trial), (_kind(trial),), ()):
            if key in self._spent:
                return self._spent[key].value
        return None

    def _added(self, trial: Planned) -> float:
        """The cost of poisoned runs with this attack over that of their clean runs; 1 where nothing is known."""
        pairs = [(cost, self._spent[h].value) for h, cost in self._poisoned.get(_attack(trial), ()) if h in self._spent]
        calm = sum(without for _, without in pairs)
        return sum(cost for cost, _ in pairs) / calm if calm > 0 else 1.0


class _Mean:
    """A mean that grows."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float:
        return self.total / self.count


def forecast(suite: Suite, plan: Plan, store: Store) -> Forecast:
    """What the missing trials may cost (`Costs`)."""
    wanted = [t for t in plan.trials if not t.refused]
    missing = [t for t in wanted if not store.trial(t.key)]
    if not missing:
        return Forecast(0.0, 0, 0, "everything is there")
    if len(missing) == len(wanted):
        source = "the suite's own figure" if suite.minutes else "nothing measured here yet"
        whole = suite.minutes * 120 * len(plan.seeds) / len(suite.seeds) if suite.minutes else None
        return Forecast(whole, len(missing), 0, source)
    costs = Costs()
    for t in wanted:
        if records := store.trial(t.key):
            costs.add(t, records)
    seconds = sum(costs.of(t) or 0.0 for t in missing)
    return Forecast(seconds, len(missing), sum(map(costs.is_known, missing)), "what was measured in this folder", True)


def _kind(trial: Planned) -> str:
    return "honest" if trial.clean else "poisoned" if trial.knows else "read"


def _exactly(trial: Planned) -> tuple[str, ...]:
    return (trial.problem, trial.defense, trial.attack, trial.knows)


def _attack(trial: Planned) -> tuple[str, ...]:
    return (trial.problem, trial.attack, trial.knows)


def _honest(trial: Planned) -> tuple[str, ...]:
    return (trial.problem, trial.defense, "none", "")
