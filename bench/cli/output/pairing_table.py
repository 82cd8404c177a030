"""Records of one pairing → the table that sets no defense, paper form and adaptive form side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from fedarena import goals
from fedarena.core.text.mean import Mean, mean
from fedarena.core.text.numbers import MEASURES, level
from fedarena.core.threat import EVERYONE, Form
from fedarena.goals.goal import Wording
from fedarena.records.measure import measure_of
from fedarena.records.schema import Record

EXPLAINED = 1e-5
"""Relative squared distance below which an observation counts as explained."""

NO_DEFENSE = "no defense"
COLUMNS: Mapping[Form, str] = {"paper": "paper form", "adaptive": "adaptive form"}
"""Of the defense; what stands without one comes before them, in one column or in one for each form."""

OF_SEVERAL = (
    "Where there are several readings of what was seen, a cell is told by the one that leaks most, which the judge "
    "picks and no attacker could; its interval holds for all of them together"
)


@dataclass(frozen=True)
class Cell:
    """One party under one form, over seeds.

    Attributes:
        goal: what the attack is after.
        status: ok, n/a, diverged, failed, or `mixed` when seeds disagree.
        reason: why, where it is not ok.
        reading: the reading with the largest leak, which is the one shown.
        metrics: means over the seeds that are ok.
        keys: the records that the cell is made of, worst reading only.
        beside: what the other readings say, by name.
    """

    goal: str
    status: str
    reason: str
    reading: str
    metrics: dict[str, Mean]
    keys: tuple[str, ...]
    beside: tuple[tuple[str, Cell], ...] = ()

    def value(self, name: str) -> float | None:
        """A metric's mean, or None."""
        return self.metrics[name].value if name in self.metrics else None


def cell(records: Iterable[Record]) -> Cell | None:
    """One cell from the records of one (defense, party, form), all readings and seeds; None without records.

    A record without a reading (n/a, failed, diverged) counts for every reading, so that no seed is lost.
    """
    rows = list(records)
    without = [r for r in rows if not r["reading"]]
    names = list(dict.fromkeys(r["reading"] for r in rows if r["reading"])) or ([""] if without else [])
    of_each = [[r for r in rows if name and r["reading"] == name] for name in names]
    judged = sum(any(r["metrics"] for r in some) for some in of_each)
    cells = [_one_reading(name, some + without, judged) for name, some in zip(names, of_each, strict=True)]
    if len(cells) < 2:
        return next(iter(cells), None)
    worst = max(cells, key=_severity)
    return replace(worst, beside=tuple((c.reading, c) for c in cells if c is not worst))


def _one_reading(reading: str, rows: list[Record], judged: int) -> Cell:
    """Intervals are over seeds, and hold for all of the readings judged at once."""
    rows = sorted(rows, key=lambda r: int(r["seed"]))
    statuses = list(dict.fromkeys(r["status"] for r in rows))
    status = statuses[0] if len(statuses) == 1 else "mixed"
    reasons: dict[str, list[int]] = {}
    for r in rows:
        if r["reason"]:
            reasons.setdefault(f"{r['status']}: {r['reason']}" if status == "mixed" else r["reason"], []).append(
                r["seed"]
            )
    told = [f"seed {_and([str(s) for s in seeds])}: {why}" for why, seeds in reasons.items()]
    everywhere = len(reasons) == 1 and len(next(iter(reasons.values()))) == len(rows)
    reason = next(iter(reasons)) if everywhere and status != "mixed" else "; ".join(told)
    names = list(dict.fromkeys(name for r in rows for name in r["metrics"]))
    having = {name: [r["metrics"][name] for r in rows if name in r["metrics"]] for name in names}
    metrics = {name: mean(values, max(judged, 1)) for name, values in having.items()}
    return Cell(rows[0]["goal"], status, reason, reading, metrics, tuple(r["key"] for r in rows))


def _severity(c: Cell) -> tuple[float, float]:
    """Worst for the defender first, by what the goal is told by."""
    told = goals.find(c.goal).wording(list(c.metrics))
    value, tie = c.value(told.metric), c.value(told.tie)
    return (value or 0.0, tie if tie is not None else -2.0)


def table(records: Sequence[Record], defense: str) -> dict[str, dict[str, Cell | None]]:
    """Party → column → cell, in the order in which they are printed."""
    columns = {title: (defense, form) for form, title in COLUMNS.items()}
    plain = [f for f in COLUMNS if any(r["defense"] == "fedavg" and r["form"] == f for r in records)]
    if defense != "fedavg" and plain:
        several = {f"{NO_DEFENSE}, {COLUMNS[form]}": ("fedavg", form) for form in plain}
        columns = (several if len(several) > 1 else {NO_DEFENSE: ("fedavg", plain[0])}) | columns
    rows: dict[str, dict[str, Cell | None]] = {}
    for party in EVERYONE:
        of_party = [r for r in records if r["party"] == party]
        if of_party:
            rows[party] = {
                title: cell(r for r in of_party if (r["defense"], r["form"]) == which)
                for title, which in columns.items()
            }
    return rows


def verdict(rows: dict[str, dict[str, Cell | None]], records: Sequence[Record], defense: str, attack: str) -> str:
    """One sentence: what the adaptive attacker gains over the paper's, and what the defense costs in accuracy."""
    return f"{_privacy(rows, records, defense, attack)}{_accuracy(records, defense)}."


def _accuracy(records: Sequence[Record], defense: str) -> str:
    """A clause, where the defended model keeps less than nine tenths of FedAvg's accuracy."""
    utility = [r["utility"] for r in records if r["defense"] == defense]
    ours, plain = (fmean(u[k] for u in utility) for k in ("clean_accuracy", "fedavg_accuracy"))
    if ours >= plain - 0.1 * abs(plain):
        return ""
    measure = measure_of(records)
    reached, usual = (level(Mean(value, None, 1), measure) for value in (ours, plain))
    return f"; the model that it trains here has {reached} {MEASURES[measure]}, FedAvg's {usual}"


def _privacy(rows: dict[str, dict[str, Cell | None]], records: Sequence[Record], defense: str, attack: str) -> str:
    goal = goals.find(records[0]["goal"])
    told = goal.wording([name for r in records for name in r["metrics"]])
    paper, adaptive = (_outcomes(rows, column, told) for column in COLUMNS.values())
    if not paper and not adaptive:
        return _nothing(attack)
    beside, listed = goal.guessing(records), partial(_list, goal.parties)
    if defense == "fedavg":
        other = (
            f" (in the form that its paper tried {listed(paper)})" if adaptive and paper not in ({}, adaptive) else ""
        )
        return f"{told.undefended.format(attack=attack)} {listed(adaptive or paper)}{other}{beside}"

    def base(form: Form) -> str:
        """What an attack of that form, or of the only one that was run, does without a defense."""
        plain = _outcomes(rows, f"{NO_DEFENSE}, {COLUMNS[form]}", told) or _outcomes(rows, NO_DEFENSE, told)
        return f" (no defense: {listed(plain)})" if plain else ""

    begins = told.defended.format(attack=attack, defense=defense)
    if not paper or not adaptive:
        form = told.adaptive if adaptive else "in the form that its paper tried, the only one run"
        return f"{begins} {listed(adaptive or paper)}, {form}{base('adaptive' if adaptive else 'paper')}{beside}"
    both = base("paper") if base("paper") != base("adaptive") else ""
    first = f"{begins} {listed(paper)} in the form that its paper tried{both}"
    return f"{first}, and {listed(adaptive)} when {told.adaptive}{base('adaptive')}{_open(rows)}{beside}"


def _open(rows: dict[str, dict[str, Cell | None]]) -> str:
    """A clause for cells where the observation is explained by images that are not the victims'."""
    for cells in rows.values():
        c = cells.get("adaptive form")
        if c is not None and (c.value("recovered") or 0.0) < 0.5 and (c.value("match") or 1.0) < EXPLAINED:
            return "; other images explain what was seen as well, so that a better prior may find the right ones"
    return ""


def _outcomes(rows: dict[str, dict[str, Cell | None]], column: str, told: Wording) -> dict[str, str]:
    """Party → what a column's cell says in words, where it has something to say."""
    found = {party: cells.get(column) for party, cells in rows.items()}
    return {p: _outcome(c, told) for p, c in found.items() if c is not None and told.metric in c.metrics}


def _outcome(c: Cell, told: Wording) -> str:
    """In words; by which reading, where others say something else."""
    return f"{told.outcome(c)} by '{c.reading}'" if picked(c) else told.outcome(c)


def picked(c: Cell) -> bool:
    """Whether it is told by one of several readings that do not say the same."""
    metric = goals.find(c.goal).wording(list(c.metrics)).metric
    return bool({other.value(metric) for _, other in c.beside} - {None, c.value(metric)})


def _list(everyone: Collection[str], outcomes: dict[str, str]) -> str:
    """'0 % as the client, 100 % as the server and the eavesdropper'; of all who could attack, 'as any party'."""
    groups: dict[str, list[str]] = {}
    for party, outcome in outcomes.items():
        groups.setdefault(outcome, []).append(f"the {party}")
    if len(groups) == 1 and outcomes.keys() >= set(everyone):
        return f"{next(iter(groups))} as any party"
    return ", ".join(f"{outcome} as {_and(parties)}" for outcome, parties in groups.items())


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _nothing(attack: str) -> str:
    return f"{attack} gave no result; the reasons stand below the table"
