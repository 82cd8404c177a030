"""Records of one pairing → its verdict, and its table: no defense, paper form and adaptive form side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from fedarena.contracts.baseline import BASELINE
from fedarena.core.text.numbers import MEASURES, Mean, level, mean, number, quality
from fedarena.core.threat import EVERYONE, Form
from fedarena.goals.metrics.gain import learned_nothing
from fedarena.goals.pairing_table import Cell, CellText, Notes, PairingTable, and_list, over_seeds
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
    several = [f"{OF_SEVERAL}."] if any(picked(c, text) for c in cells) else []
    return PairingTable(
        title="attacker",
        columns=tuple(next(iter(rows.values()))),
        rows=texts,
        notes=tuple(notes.notes),
        sentences=(*several, *text.baseline(records), *_utility_and_cost(records, defense)),
        verdict=verdict(rows, records, defense, attack, text, parties),
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
        for party in EVERYONE
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


def verdict(
    rows: Rows, records: Sequence[Record], defense: str, attack: str, text: GoalText, parties: Collection[str]
) -> str:
    """The first sentence is the verdict; others say what there is without a defense, in paper form, and by a guess.

    A last sentence names a lost accuracy, or says that the model that is attacked has learned nothing.
    """
    sentences = _privacy(rows, records, defense, attack, text, parties)
    sentences.append(_uninformative(records, defense) or _accuracy(records, defense))
    return " ".join(filter(None, sentences))


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
        f"But this is uninformative: the model that {defense} trains here is hardly better than a constant guess "
        f"({MEASURES[measure]} {level(reached, measure)}, the guess's {guess}). What is read from it, or is not, says "
        "nothing about a model that learns."
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


def _privacy(
    rows: Rows, records: Sequence[Record], defense: str, attack: str, text: GoalText, parties: Collection[str]
) -> list[str]:
    """What the strongest form reaches, what it is without a defense, the other form, and what a guess reaches."""
    wording = text.wording([name for r in records for name in r["metrics"]])
    of_form: dict[Form, dict[str, str]] = {
        form: _outcomes(rows, title, wording, text) for form, title in COLUMNS.items()
    }
    tried = [form for form in reversed(COLUMNS) if of_form[form]]  # the strongest first
    if not tried:
        return [f"{attack} gave no result; the reasons stand below the table."]
    listed = partial(_list, parties)
    if defense == BASELINE and of_form["paper"] == of_form["adaptive"]:
        tried = ["adaptive"]
    begins = wording.undefended if defense == BASELINE else wording.defended
    where: dict[Form, str] = {"paper": "in the form that its paper tried", "adaptive": wording.adaptive}
    first, *others = tried
    only = ", the only one run" if tried == ["paper"] and defense != BASELINE else ""
    place = "" if defense == BASELINE and first == "adaptive" else f", {where[first]}"
    sentences = [f"{begins.format(attack=attack, defense=defense)} {listed(of_form[first])}{place}{only}."]
    if defense != BASELINE:
        sentences += [_open(rows), _without_defense(rows, tried, wording, text, listed)]
    sentences += [f"{where[form].capitalize()}, it is {listed(of_form[form])}." for form in others]
    return [*sentences, text.guessing(records)]


def _without_defense(
    rows: Rows, tried: Sequence[Form], wording: Wording, text: GoalText, listed: Callable[[dict[str, str]], str]
) -> str:
    """A sentence: the outcomes without a defense, for the same forms or for the only one that was run."""
    base = {}
    for form in tried:
        plain = _outcomes(rows, f"{NO_DEFENSE}, {COLUMNS[form]}", wording, text)
        base[form] = plain or _outcomes(rows, NO_DEFENSE, wording, text)
    outcomes = {form: listed(plain) for form, plain in base.items() if plain}
    if not outcomes:
        return ""
    if len(set(outcomes.values())) == 1:
        return f"Without a defense, it is {next(iter(outcomes.values()))}."
    return (
        f"Without a defense, it is {and_list([f'{said} in the {COLUMNS[form]}' for form, said in outcomes.items()])}."
    )


def _open(rows: Rows) -> str:
    """A sentence for cells in which images other than the victims' explain the observation; else empty."""
    for cells in rows.values():
        c = cells.get(COLUMNS["adaptive"])
        if c is not None and (c.value("recovered") or 0.0) < 0.5 and (c.value("match") or 1.0) < EXPLAINED:
            return "Other images explain what was seen as well, so that a better prior may find the right ones."
    return ""


def _outcomes(rows: Rows, column: str, wording: Wording, text: GoalText) -> dict[str, str]:
    """Party → the outcome of its cell in a column, in words; parties without an outcome are left out."""
    cells = {party: row.get(column) for party, row in rows.items()}
    return {p: _outcome(c, wording, text) for p, c in cells.items() if c is not None and wording.metric in c.metrics}


def _outcome(c: Cell, wording: Wording, text: GoalText) -> str:
    """A cell's outcome in words. It names the reading if other readings disagree."""
    return f"{wording.outcome(c)} by '{c.reading}'" if picked(c, text) else wording.outcome(c)


def _list(everyone: Collection[str], outcomes: dict[str, str]) -> str:
    """'0 % as the client, 100 % as the server and the eavesdropper', or 'as any party' for all that could attack."""
    groups: dict[str, list[str]] = {}
    for party, outcome in outcomes.items():
        groups.setdefault(outcome, []).append(f"the {party}")
    if len(groups) == 1 and outcomes.keys() >= set(everyone):
        return f"{next(iter(groups))} as any party"
    return ", ".join(f"{outcome} as {and_list(parties)}" for outcome, parties in groups.items())


def _utility_and_cost(records: Sequence[Record], defense: str) -> list[str]:
    """A line for FedAvg and one for the defense: the accuracy of its model, and its costs."""
    lines = []
    for name in dict.fromkeys((BASELINE, defense)):
        runs = list({r["seed"]: r for r in records if r["defense"] == name}.values())
        reached = quality(mean([r["utility"]["clean_accuracy"] for r in runs]), runs[0]["utility"]["measure"])
        cost = [r["cost"] for r in runs]
        up, down, peak = (mean([c[k] for c in cost]).value for k in ("bytes_up", "bytes_down", "peak_bytes"))
        slower = mean([c["relative_seconds"] or 0.0 for c in cost]).value
        lines.append(
            f"{name}: {reached}; per client and round {_bytes(up)} up, {_bytes(down)} down; "
            f"training time {slower:.2f} x FedAvg's; a client's peak {_bytes(peak)}"
        )
    return lines


def _bytes(n: float) -> str:
    return f"{n / 1e6:.2f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"
