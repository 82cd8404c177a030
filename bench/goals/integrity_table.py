"""Records of one poisoning attack against one defense → its verdict, and its table beside no defense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fedarena.contracts.baseline import BASELINE
from fedarena.core import registry
from fedarena.core.text.figures import Line
from fedarena.core.text.numbers import MEASURES, Mean, level, mean, percent, quality
from fedarena.federation.compose import defense_cards
from fedarena.goals.metrics.gain import floor_of, gained
from fedarena.goals.metrics.harm import WINDOW
from fedarena.goals.nodes import honest_nodes_line, nodes_line, over_runs
from fedarena.goals.pairing_table import NO_RESULT, Cell, CellText, Curves, Notes, PairingTable, and_list, over_seeds
from fedarena.goals.text import rate
from fedarena.records.schema import Record, Utility

NO_DEFENSE = "no defense"
PASSED = 0.02
"""From how much below the last accuracy on the verdict gives that of the worst window."""
CLEAN = "clean"
"""The row of the runs in which all clients are honest."""

LINES = (
    ("attack_success_rate", "trigger succeeds {}"),
    ("clean_success_rate", "(unattacked: {})"),
    ("corrupted_weight", "weight of corrupted {}"),
    ("honest_rejected", "rejected: honest {}"),
    ("corrupted_rejected", "rejected: corrupted {}"),
)
"""Metrics that every defense may have, and how they are printed."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        knowledge: what the corrupted clients know, or `CLEAN`.
        cells: defense → cell over seeds.
    """

    knowledge: str
    cells: dict[str, Cell | None]


def pairing_table(records: Sequence[Record], defense: str, attack: str) -> PairingTable:
    """The table as text."""
    cells, notes, measure = rows(records, defense), Notes(), records[0]["utility"]["measure"]
    names = tuple(cells[0].cells)
    verdict, *remarks = conclusion(records, defense, attack)
    unweighed_defenses = [f"{name}: {reason}" for name in names if (reason := unweighed(records, name))]
    return PairingTable(
        title="corrupted clients know",
        columns=tuple(f"{NO_DEFENSE} ({BASELINE})" if name == BASELINE else name for name in names),
        rows=tuple(_row_text(row, records, notes, measure) for row in cells),
        notes=tuple(notes.notes),
        sentences=(*_unfederated(records, measure), *unweighed_defenses, *(_tuned(r) for r in records if r["tuned"])),
        verdict=verdict,
        remarks=tuple(remarks),
    )


def accuracy_figure(records: Sequence[Record], defense: str, attack: str) -> Curves:
    """Accuracy, or R² of numbers, by round of the first seed, with all clients honest and under attack."""
    seed = min(r["seed"] for r in records)
    lines = []
    for r in records:
        if r["seed"] != seed or r["status"] != "ok":
            continue
        curve = r["attacked"]["curve"] if r["attacker_knowledge"] else r["utility"]["clean_curve"]
        who = "without poisoning" if not r["attacker_knowledge"] else f"{attack}, {r['attacker_knowledge']}"
        name = NO_DEFENSE if r["defense"] == BASELINE else r["defense"]
        lines.append(Line(f"{name}: {who}", [p[0] for p in curve], [p[1] for p in curve], r["defense"] != BASELINE))
    measure, dataset = records[0]["utility"]["measure"], records[0]["problem"]["dataset"]
    axis = MEASURES[measure] + (" (below 0: not drawn)" if measure == "R2" else "")
    return Curves(f"{defense} against {attack} on {dataset}, seed {seed}", lines, "round", axis)


# -- cells ---------------------------------------------------------------------------------------------


def rows(records: Sequence[Record], defense: str) -> list[Row]:
    """The clean row, then one for each level of knowledge; columns are FedAvg (no defense) and the defense."""
    columns = list(dict.fromkeys((BASELINE, defense)))
    table = []
    for knowledge in dict.fromkeys(r["attacker_knowledge"] for r in records):
        of_column = {
            d: [r for r in records if (r["attacker_knowledge"], r["defense"]) == (knowledge, d)] for d in columns
        }
        cells = {d: over_seeds(some) if some else None for d, some in of_column.items()}
        table.append(Row(knowledge or CLEAN, cells))
    return table


def clean_accuracy(records: Sequence[Record], defense: str) -> list[float]:
    """Accuracy of the runs in which all clients are honest, by seed."""
    return [r["utility"]["clean_accuracy"] for r in records if not r["attacker_knowledge"] and r["defense"] == defense]


def _row_text(row: Row, records: Sequence[Record], notes: Notes, measure: str) -> tuple[str, tuple[CellText, ...]]:
    if row.knowledge != CLEAN:
        return row.knowledge, tuple(
            CellText(_poisoned_lines(d, c, notes, measure, uninformative=_useless(records, d)[1]))
            for d, c in row.cells.items()
        )
    cells = []
    for defense, c in row.cells.items():
        reached = quality(mean(clean_accuracy(records, defense)), measure)
        clean = [r for r in records if not r["attacker_knowledge"] and r["defense"] == defense]
        nodes = nodes_line(over_runs(clean), measure)
        cells.append(CellText(_clean_lines(defense, c, (reached, *([nodes] if nodes else [])))))
    return "(clean run)", tuple(cells)


def _lines(defense: str) -> list[tuple[str, str]]:
    """Metrics of a defense, including those that its cards declare → how they are printed."""
    own = [pair for card in defense_cards(defense) for pair in card.verdicts]
    return [
        *LINES,
        *((f"{who}_{name}", f"{text}: {who} {{}}") for name, text in own for who in ("honest", "corrupted")),
    ]


def _clean_lines(defense: str, c: Cell | None, reached: Sequence[str]) -> tuple[str, ...]:
    lines = [*reached]
    for name, text in _lines(defense):
        if name.startswith("honest_") and c is not None and (c.value(name) or 0.0) > 0:
            lines.append(text.format(percent(c.metrics[name])))
    return tuple(lines)


def _poisoned_lines(
    defense: str, c: Cell | None, notes: Notes, measure: str, *, uninformative: bool
) -> tuple[str, ...]:
    if c is None:
        return ("-",)
    lines = []
    if "accuracy" in c.metrics:
        nodes = honest_nodes_line(c.metrics, measure)
        lines += [quality(c.metrics["accuracy"], measure), *([nodes] if nodes else [])]
    if "lowest" in c.metrics:
        # Records of earlier versions have neither a mean nor a window.
        names = {
            "mean_accuracy": "mean",
            "window_accuracy": f"worst {100 * WINDOW:g} % of the rounds",
            "lowest": "lowest",
        }
        values = [f"{title} {level(c.metrics[name], measure)}" for name, title in names.items() if name in c.metrics]
        lines.append(f"under attack: {', '.join(values)}")
    shown = [(name, text) for name, text in _lines(defense) if name in c.metrics]
    if not any((c.value(f"{who}_rejected") or 0.0) > 0 for who in ("honest", "corrupted")):
        shown = [(name, text) for name, text in shown if not name.endswith("_rejected")]
    lines += [text.format(rate(c.metrics, name)) for name, text in shown]
    if "lifespan" in c.metrics:
        lines.append(f"the trigger {_lifespan(c)}")
    if "accuracy" in c.metrics:
        lines.append("uninformative: its clean run gains nothing" if uninformative else _recovery(c))
    if c.reason:
        lines.insert(0, f"{'see' if c.status == 'ok' else c.status} ({notes.number(c.reason)})")
    return tuple(lines)


def _lifespan(c: Cell) -> str:
    """How long the backdoor lived after the attack had stopped, and on how many of the seeds it did not die."""
    lived, alive = c.metrics["lifespan"], c.metrics["lifespan_is_bound"]
    length = f"{'≥ ' if alive.value else ''}{lived.value:.0f} rounds"
    survivors = round(alive.value * alive.seeds)
    still = "" if not survivors or alive.seeds == 1 else f" (it does not die on {survivors} of {alive.seeds} seeds)"
    return f"lives for {length} after the attack{still}"


def _recovery(c: Cell) -> str:
    """How long the model took to come back, and over how many of the seeds it did."""
    back, seeds = c.metrics.get("rounds_to_recover"), c.metrics["accuracy"].seeds
    if back is None:
        return "does not recover"
    of = "" if back.seeds == seeds else f" ({back.seeds} of {seeds} seeds)"
    return (
        f"recovers after {back.value:.0f} rounds{of}"
        if back.value
        else f"always within 5 % of the honest run, once that has learned{of}"
    )


# -- sentences -----------------------------------------------------------------------------------------


def _unfederated(records: Sequence[Record], measure: str) -> list[str]:
    """What can be had without a federation, of which a model under attack must leave something; [] if not measured."""
    clean = [r for r in records if not r["attacker_knowledge"]]
    chance = Mean(fmean(r["utility"]["chance"] for r in clean), None, 1)
    parts = [f"a constant answer has {level(chance, measure)}"]
    for name, who in (("local_only", "clients alone"), ("server_only", "the server alone")):
        # FedAvg's record and the defense's have the same value for the clients of a seed.
        by_seed: dict[int, Any] = {r["seed"]: alone for r in clean if (alone := r["utility"]["references"].get(name))}
        parts += [f"{who} {level(mean(list(by_seed.values())), measure)}"] if by_seed else []
    if len(parts) == 1:
        return []
    return [f"Without a federation {and_list(parts)} {MEASURES[measure]}; integrity counts from the best of these"]


def _tuned(record: Record) -> str:
    """What an attacker chose after its simulations, beside the values that the options gave, which it tries first."""
    names, tried, chosen = record["tuned"]["options"], record["tuned"]["tried"], record["tuned"]["chosen"]
    own = record["attacked"].get("strengths", {})

    def one(name: str, value: float | None) -> str:
        if value is not None:
            return f"{name}={value:g}"
        return f"{name} of its formula" + (f", {own[name]:.4g}" if name in own else "")

    def text(values: Sequence[float | None]) -> str:
        return ", ".join(one(name, v) for name, v in zip(names, values, strict=True))

    given = tried[0][0]
    what = f"kept {text(given)}" if chosen == given else f"chose {text(chosen)} in place of {text(given)}"
    where = f"{record['defense']}, {record['attacker_knowledge']}, seed {record['seed']}"
    return f"{where}: the attacker {what} after {len(tried)} simulated runs"


def unweighed(records: Sequence[Record], defense: str) -> str:
    """Why the table does not say which uploads a defense used; empty where it does."""
    done = [r for r in records if r["defense"] == defense and r["status"] == "ok"]
    if not done or any(name.endswith("_rejected") for r in done for name in r["metrics"]):
        return ""
    parts = [group.partition("+")[2] for group in done[0]["options"] if group.startswith("defense+")]
    if any(registry.find_part(part).kind == "secure" for part in parts):
        return "no weights and no rejections of uploads, since the server sees only their sum"
    if parts:
        return "no weights and no rejections of uploads, since a coordinate-wise rule selects no uploads"
    return "no weights and no rejections of uploads, since the protocol does not report how it used each one"


def conclusion(records: Sequence[Record], defense: str, attack: str) -> tuple[str, ...]:
    """Sentences: the first is the verdict, the others are remarks.

    The verdict is the largest harm to the defense, beside FedAvg; or that there was nothing to break. Remarks are on
    other knowledge, on accuracy beside a trigger, and on seeds without anything to break.
    """
    harms: dict[str, float] = {}
    for row in rows(records, defense):
        judged = {name: c for name, c in row.cells.items() if c is not None and "accuracy" in c.metrics}
        if row.knowledge == CLEAN or defense not in judged:
            continue
        c = judged[defense]
        cells = {defense: c} | judged
        begin = f"With {attack}, corrupted clients that {_KNOWN[row.knowledge]}"
        harms[f"{begin} {_taken(cells, records)}."] = fmean(clean_accuracy(records, defense)) - _worst(c).value
        if "attack_success_rate" in c.metrics:
            gain = c.metrics["attack_success_rate"].value - c.metrics["clean_success_rate"].value
            harms[f"{begin} {_triggered(cells)}."] = gain
    sentences = sorted(harms, key=lambda said: -harms[said]) or [NO_RESULT.format(attack=attack)]
    nothing, mostly = _nothing_learned(records, defense)
    sentences.insert(0 if mostly else len(sentences), nothing)
    if len({r["seed"] for r in records}) > 1:
        sentences.append("Intervals: 95 % confidence over seeds.")
    return tuple(filter(None, sentences))


_KNOWN = {"none": "have no data", "own": "know only their own data", "omniscient": "know all honest uploads"}


def _taken(cells: Mapping[str, Cell], records: Sequence[Record]) -> str:
    """The accuracy that is lost, as a predicate: at the end, or in the worst window if the harm has passed."""
    measure = records[0]["utility"]["measure"]
    passed = any(_worst(c).value < c.metrics["accuracy"].value - PASSED for c in cells.values())
    first, *other = (
        f"{_called(name)} from {level(mean(clean_accuracy(records, name)), measure)} to "
        f"{level(_worst(c) if passed else c.metrics['accuracy'], measure)}"
        for name, c in cells.items()
    )
    return " and ".join([f"take {first} {MEASURES[measure]}{' in the worst rounds' if passed else ''}", *other])


def _triggered(cells: Mapping[str, Cell]) -> str:
    """How often the trigger works, as a predicate."""
    worked = [
        f"{rate(c.metrics, 'attack_success_rate')} of inputs under {_called(name)} "
        f"({percent(c.metrics['clean_success_rate'])} without poisoning)"
        for name, c in cells.items()
    ]
    return f"make their trigger work on {' and '.join(worked)}"


def _worst(c: Cell) -> Mean:
    """The last accuracy, or that of the worst window if it is lower."""
    last = c.metrics["accuracy"]
    return min(last, c.metrics.get("window_accuracy", last), key=lambda accuracy: accuracy.value)


def _called(defense: str) -> str:
    return "FedAvg" if defense == BASELINE else defense


def _useless(records: Sequence[Record], defense: str) -> tuple[list[Utility], bool]:
    """The clean runs of a defense that are no better than what can be had without a federation; whether all are."""
    clean = [r["utility"] for r in records if not r["attacker_knowledge"] and r["defense"] == defense]
    nothing = [u for u in clean if not gained(u["clean_accuracy"], floor_of(u))]
    return nothing, bool(clean) and len(nothing) == len(clean)


def _nothing_learned(records: Sequence[Record], defense: str) -> tuple[str, bool]:
    """A sentence, if the clean runs that integrity is measured against gain nothing on some seed, else empty.

    The second value is whether that holds for half of the seeds or more, of the defense or of FedAvg.
    """
    useless, floors, measure, mostly = [], [], records[0]["utility"]["measure"], False
    for name in dict.fromkeys((BASELINE, defense)):
        nothing, everywhere = _useless(records, name)
        if nothing:
            reached = level(Mean(fmean(u["clean_accuracy"] for u in nothing), None, len(nothing)), measure)
            of = len(clean_accuracy(records, name))
            seeds = "" if everywhere else f" on {len(nothing)} of {of} seeds"
            useless.append(f"{_called(name)} ({reached}{seeds})")
            floors += [floor_of(u) for u in nothing]
            mostly = mostly or 2 * len(nothing) >= of
    if not useless:
        return "", False
    # If only the defense fails, nothing is left of its model; if FedAvg fails as well, there was nothing to keep.
    then = "there is no integrity" if useless[0].startswith(_called(BASELINE)) else "integrity is 0"
    alone = level(Mean(fmean(floors), None, 1), measure)
    return (
        f"Even without poisoning the {MEASURES[measure]} of {' and '.join(useless)} is not clearly better than what "
        f"can be had without a federation ({alone}): an attack has nothing to break there, and {then}."
    ), mostly
