"""Records of one pairing → its verdict, and its table: no defense, paper form and adaptive form side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from fedarena.contracts.baseline import BASELINE
from fedarena.core.text.numbers import MEASURES, Mean, level, mean, number, quality, size
from fedarena.core.threat import READERS, Form
from fedarena.goals.metrics.gain import learned_nothing
from fedarena.goals.nodes import nodes_line, over_runs
from fedarena.goals.pairing_table import NO_RESULT, Cell, CellText, Notes, PairingTable, and_list, over_seeds
from fedarena.goals.text import GoalText, Wording
from fedarena.records.reading_names import belongs, names_of
from fedarena.records.schema import Record

EXPLAINED = 1e-5
"""Relative squared distance below which an observation counts as explained."""

NO_DEFENSE = "no defense"
COLUMNS: dict[Form, str] = {"paper": "paper form", "adaptive": "adaptive form"}
"""The columns of the defense. The run without a defense comes before them, in one column or in one for each form."""

OF_SEVERAL = (
    "Where there are several readings of what was seen, a cell shows the one that leaks most, which the judge "
    "picks and no attacker could; its interval holds for all of them together"
)

Rows = dict[str, dict[str, Cell | None]]
"""Party → column → cell, in the order in which they are printed."""


def pairing_table(
    records: Sequence[Record], defense: str, attack: str, text: GoalText, parties: Collection[str]
) -> PairingTable:
    """The table as text.

    Args:
        text: the words of the attack's goal. parties: the parties that can have this goal.
    """
    rows, notes = table(records, defense, text), Notes()
    cells = [c for row in rows.values() for c in row.values() if c is not None]
    texts = tuple((party, tuple(_cell_text(c, notes, text) for c in row.values())) for party, row in rows.items())
    verdict, *remarks = conclusion(rows, records, defense, attack, text, parties)
    several = [f"{OF_SEVERAL}."] if any(picked(c, text) for c in cells) else []
    return PairingTable(
        title="attacker",
        columns=tuple(next(iter(rows.values()))),
        rows=texts,
        notes=tuple(notes.notes),
        sentences=(*several, *text.baseline(records), *_utility_and_cost(records, defense)),
        verdict=verdict,
        remarks=tuple(remarks),
    )


# -- cells ---------------------------------------------------------------------------------------------


def cell_of(records: Iterable[Record], text: GoalText) -> Cell | None:
    """One cell from the records of one (defense, party, form), all readings and seeds; None without records."""
    named_first = sorted(records, key=lambda record: record["reading"] == "")
    readings = {name: [r for r in named_first if belongs(r, name)] for name in names_of(named_first)}
    judged = sum(any(r["metrics"] for r in of_reading) for of_reading in readings.values())
    cells = [over_seeds(of_reading, name, judged) for name, of_reading in readings.items()]
    if len(cells) < 2:
        return next(iter(cells), None)
    worst = max(cells, key=partial(_severity, text=text))
    return replace(worst, beside=tuple((c.reading, c) for c in cells if c is not worst))


def _severity(c: Cell, text: GoalText) -> tuple[float, float]:
    """How bad a cell is for the defender, by the goal's main metric."""
    wording = text.wording(list(c.metrics))
    value, tie = c.value(wording.metric), c.value(wording.tie)
    return (value or 0.0, tie if tie is not None else -2.0)


def table(records: Sequence[Record], defense: str, text: GoalText) -> Rows:
    """The cells of a pairing."""
    columns = _columns(records, defense)
    of_column: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        of_column.setdefault((record["party"], record["defense"], record["form"]), []).append(record)
    attackers = {record["party"] for record in records}
    return {
        party: {title: cell_of(of_column.get((party, *column), ()), text) for title, column in columns.items()}
        for party in READERS
        if party in attackers
    }


def _columns(records: Sequence[Record], defense: str) -> dict[str, tuple[str, str]]:
    """Title of a column → its defense and its form."""
    columns: dict[str, tuple[str, str]] = {title: (defense, form) for form, title in COLUMNS.items()}
    plain = [f for f in COLUMNS if any(r["defense"] == BASELINE and r["form"] == f for r in records)]
    if defense == BASELINE or not plain:
        return columns
    if len(plain) == 1:
        return {NO_DEFENSE: (BASELINE, plain[0])} | columns
    return {f"{NO_DEFENSE}, {COLUMNS[form]}": (BASELINE, form) for form in plain} | columns


def picked(c: Cell, text: GoalText) -> bool:
    """Whether the cell shows one of several readings that disagree."""
    metric = text.wording(list(c.metrics)).metric
    return bool({other.value(metric) for _, other in c.beside} - {None, c.value(metric)})


def _cell_text(c: Cell | None, notes: Notes, text: GoalText) -> CellText:
    if c is None:
        return CellText(("not run",))
    lines, wording = text.lines(c), text.wording(list(c.metrics))
    if picked(c, text):
        lines += [f"{name}: {wording.outcome(o)}" for name, o in c.beside if wording.metric in o.metrics]
    if "cosine" in c.metrics and wording.metric != "cosine":
        lines.append(f"estimate: cosine {number(c.metrics['cosine'])}")
    reading = c.reading if lines else ""
    if c.status != "ok":
        lines.insert(0, f"{c.status} ({notes.number(c.reason)})")
    return CellText(tuple(lines), reading)


# -- sentences -----------------------------------------------------------------------------------------


def conclusion(
    rows: Rows, records: Sequence[Record], defense: str, attack: str, text: GoalText, parties: Collection[str]
) -> tuple[str, ...]:
    """Sentences: the first is the verdict, the others are remarks.

    The verdict is what the stronger form reaches as the party that reaches most, beside the same without a defense. If
    the attacked model has learned nothing, the verdict is that. Remarks are on other parties, the other form, other
    images that explain what was seen, and lost accuracy.
    """
    wording = text.wording([name for r in records for name in r["metrics"]])
    useless = _uninformative(records, defense)
    found = _found(rows, defense, attack, wording, parties) or [NO_RESULT.format(attack=attack)]
    lost = "" if useless else _accuracy(records, defense)
    return tuple(filter(None, (useless, *found, "" if defense == BASELINE else _open(rows), lost)))


def _uninformative(records: Sequence[Record], defense: str) -> str:
    """A sentence, if the defended model is hardly better than a constant guess; else empty.

    So it is in the mean, or on half of the seeds or more (`fedarena.goals.metrics.gain.learned_nothing`).
    """
    of_seed = {r["seed"]: r["utility"] for r in records if r["defense"] == defense}
    reached = mean([u["clean_accuracy"] for u in of_seed.values()])
    chance = fmean(u["chance"] for u in of_seed.values())
    if not learned_nothing([u["clean_accuracy"] for u in of_seed.values()], chance):
        return ""
    measure = records[0]["utility"]["measure"]
    guess = level(Mean(chance, None, 1), measure)
    return (
        f"This is uninformative: the model that {defense} trains here is hardly better than a constant guess "
        f"({MEASURES[measure]} {level(reached, measure)}, the guess's {guess}), and what is or is not read from it "
        "says nothing about a model that learns."
    )


def _accuracy(records: Sequence[Record], defense: str) -> str:
    """A sentence on accuracy, if the defended model keeps less than nine tenths of FedAvg's; else empty."""
    utility = [r["utility"] for r in records if r["defense"] == defense]
    ours, plain = (fmean(u[k] for u in utility) for k in ("clean_accuracy", "fedavg_accuracy"))
    if ours >= plain - 0.1 * abs(plain):
        return ""
    measure = records[0]["utility"]["measure"]
    reached, usual = (level(Mean(value, None, 1), measure) for value in (ours, plain))
    return f"The model that {defense} trains here has {reached} {MEASURES[measure]}, FedAvg's {usual}."


def _found(rows: Rows, defense: str, attack: str, wording: Wording, everyone: Collection[str]) -> list[str]:
    """The stronger form's outcome as the worst party, then what that leaves unsaid; empty without a result."""
    titles = reversed(next(iter(rows.values())))  # the adaptive form first
    of_column = {title: cells for title in titles if (cells := _judged(rows, title, wording))}
    forms = [title for title in COLUMNS.values() if title in of_column]
    if not forms:
        return []
    reached = {title: _reached(cells, wording) for title, cells in of_column.items()}
    strongest = max(reversed(forms), key=lambda title: next(iter(of_column[title].values())).value(wording.metric) or 0)
    plain = next((title for title in (f"{NO_DEFENSE}, {strongest}", NO_DEFENSE) if title in reached), "")

    def sentence(title: str, *outcomes: str) -> str:
        first, *others = ((outcome, _who(reached[title][outcome], everyone)) for outcome in outcomes)
        also = "".join(f", {outcome} as {who}" for outcome, who in others)
        return f"{_place(title, defense, attack)} {wording.finds.format(outcome=first[0])} as {first[1]}{also}"

    worst, parties = next(iter(reached[strongest].items()))
    beside = [outcome for outcome, who in reached.get(plain, {}).items() if set(who) & set(parties)]
    verdict = sentence(strongest, worst) + (f", and {beside[0]} without a defense" if beside else "")
    unsaid = [title for title, those in reached.items() if title not in (strongest, plain) or len(those) > 1]
    remarks = [sentence(title, *reached[title]) for title in unsaid]
    if forms == [COLUMNS["paper"]]:
        remarks.append("There is no result in adaptive form, in which the attack knows the protocol")
    return [f"{said}." for said in (verdict, *remarks)]


def _place(title: str, defense: str, attack: str) -> str:
    """How the sentence on a column begins."""
    form = title.removeprefix(NO_DEFENSE).removeprefix(", ")
    where = f"Against {defense}" if form == title and defense != BASELINE else "Without a defense"
    return f"{where}, {attack} in {form}" if form else f"{where}, {attack}"


def _judged(rows: Rows, title: str, wording: Wording) -> dict[str, Cell]:
    """Party → its cell in a column, the worst for the defender first; cells without a result are left out."""
    cells = {party: c for party, row in rows.items() if (c := row.get(title)) and wording.metric in c.metrics}
    return dict(sorted(cells.items(), key=lambda item: item[1].metrics[wording.metric].value, reverse=True))


def _reached(cells: Mapping[str, Cell], wording: Wording) -> dict[str, list[str]]:
    """Outcome in words → the parties that reach it, in the order of the cells."""
    reached: dict[str, list[str]] = {}
    for party, c in cells.items():
        reached.setdefault(wording.outcome(c), []).append(party)
    return reached


def _who(parties: Sequence[str], everyone: Collection[str]) -> str:
    """'the client and the server', or 'any party' for all that could attack."""
    if len(everyone) > 1 and set(parties) >= set(everyone):
        return "any party"
    return and_list([f"the {party.replace('-', ' ')}" for party in parties])


def _open(rows: Rows) -> str:
    """A sentence for cells in which images other than the victims' explain the observation; else empty."""
    for cells in rows.values():
        c = cells.get(COLUMNS["adaptive"])
        if c is not None and (c.value("recovered") or 0.0) < 0.5 and (c.value("match") or 1.0) < EXPLAINED:
            return "Other images explain what was seen as well, so that a better prior may find the right ones."
    return ""


def _utility_and_cost(records: Sequence[Record], defense: str) -> list[str]:
    """A line for FedAvg and one for the defense: the accuracy of its model, and its costs."""
    lines = []
    for name in dict.fromkeys((BASELINE, defense)):
        runs = list({r["seed"]: r for r in records if r["defense"] == name}.values())
        reached = quality(mean([r["utility"]["clean_accuracy"] for r in runs]), runs[0]["utility"]["measure"])
        cost = [r["cost"] for r in runs]
        up, down, peak = (mean([c[k] for c in cost]).value for k in ("bytes_up", "bytes_down", "peak_bytes"))
        nodes = nodes_line(over_runs(runs), runs[0]["utility"]["measure"])
        slower = mean([c["relative_seconds"] or 0.0 for c in cost]).value
        lines.append(
            f"{name}: {reached}; {f'{nodes}; ' if nodes else ''}per client and round {size(up)} up, {size(down)} down; "
            f"training time {slower:.2f} x FedAvg's; a client's peak {size(peak)}"
        )
    return lines
