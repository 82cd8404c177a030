"""The table, the sentence and the curves that `bench run` gives for poisoning attacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from fedarena.cli.output.pairing import closing, heading, numbered
from fedarena.cli.output.pairing_table import Cell
from fedarena.cli.output.poisoning_table import NOBODY, clean_accuracy, rows, unweighed, verdict
from fedarena.core.text.mean import mean
from fedarena.core.text.numbers import MEASURES, level, percent, quality
from fedarena.federation.compose import defense_cards
from fedarena.records.measure import measure_of
from fedarena.records.schema import Record

LINES = (
    ("attack_success_rate", "trigger succeeds {}"),
    ("clean_success_rate", "(unattacked: {})"),
    ("corrupted_weight", "weight of corrupted {}"),
    ("honest_rejected", "rejected: honest {}"),
    ("corrupted_rejected", "rejected: corrupted {}"),
)
"""Metrics that every defense may have, and how they are printed."""


def show_poisoning(records: Sequence[Record], defense: str, attack: str, folder: Path, picture: Path | None) -> None:
    """Print everything a person wants to know first."""
    console, found = heading(records, defense, attack), rows(records, defense)
    measure = measure_of(records)
    view = Table(box=box.SIMPLE_HEAD, show_lines=True)
    view.add_column("corrupted clients know")
    for name in found[0].cells:
        view.add_column("no defense (fedavg)" if name == "fedavg" else name)
    notes: list[str] = []
    for row in found:
        if row.knows == NOBODY:
            texts = [_honest(d, c, quality(mean(clean_accuracy(records, d)), measure)) for d, c in row.cells.items()]
        else:
            texts = [_text(d, c, notes, measure) for d, c in row.cells.items()]
        view.add_row("(nobody is corrupted)" if row.knows == NOBODY else row.knows, *texts)
    console.print(view)
    numbered(console, notes)
    for name in found[0].cells:
        if reason := unweighed(records, name):
            console.print(f"{name}: {reason}", markup=False, highlight=False)
    for name, value in _guarantees(records, defense):
        console.print(f"{name}: {value}", markup=False, highlight=False)
    for r in records:
        if r["tuned"]:
            console.print(_tuned(r), markup=False, highlight=False)
    closing(console, verdict(records, defense, attack), records, folder, picture)


def draw_curves(records: Sequence[Record], defense: str, attack: str, path: Path) -> Path:
    """Accuracy, or R² of numbers, by round of the first seed, with everybody honest and under attack."""
    from fedarena.core.text.figures import Line, curves

    seed = min(r["seed"] for r in records)
    lines = []
    for r in records:
        if r["seed"] != seed or r["status"] != "ok":
            continue
        curve = r["attacked"]["curve"] if r["knows"] else r["utility"]["clean_curve"]
        who = "everybody honest" if not r["knows"] else f"{attack}, {r['knows']}"
        name = "no defense" if r["defense"] == "fedavg" else r["defense"]
        lines.append(Line(f"{name}: {who}", [p[0] for p in curve], [p[1] for p in curve], r["defense"] != "fedavg"))
    dataset = records[0]["problem"]["dataset"]
    measure = measure_of(records)
    axis = MEASURES[measure] + (" (below 0: not drawn)" if measure == "R2" else "")
    curves(lines, f"{defense} against {attack} on {dataset}, seed {seed}", "round", axis, path)
    return path


def _tuned(record: Record) -> str:
    """What an attacker chose after trying, beside what the options gave it, which is the first that it tried."""
    names, tried, chosen = (record["tuned"][key] for key in ("options", "tried", "chosen"))
    own = record["attacked"].get("strengths", {})

    def one(name: str, value: float | None) -> str:
        if value is not None:
            return f"{name}={value:g}"
        return f"{name} of its formula" + (f", {own[name]:.4g}" if name in own else "")

    def told(values: Sequence[float | None]) -> str:
        return ", ".join(one(name, v) for name, v in zip(names, values, strict=True))

    given = tried[0][0]
    what = f"kept {told(given)}" if chosen == given else f"chose {told(chosen)} in place of {told(given)}"
    where = f"{record['defense']}, {record['knows']}, seed {record['seed']}"
    return f"{where}: the attacker {what} after {len(tried)} simulated runs"


def _lines(defense: str) -> list[tuple[str, str]]:
    """Metrics of a defense, with what its cards say of its own, and how they are printed."""
    own = [pair for card in defense_cards(defense) for pair in card.verdicts]
    return [
        *LINES,
        *((f"{who}_{name}", f"{text}: {who} {{}}") for name, text in own for who in ("honest", "corrupted")),
    ]


def _honest(defense: str, c: Cell | None, reached: str) -> str:
    lines = [reached]
    for name, text in _lines(defense):
        if name.startswith("honest_") and c is not None and (c.value(name) or 0.0) > 0:
            lines.append(text.format(percent(c.metrics[name])))
    return "\n".join(lines)


def _text(defense: str, c: Cell | None, notes: list[str], measure: str) -> str:
    if c is None:
        return "-"
    lines = []
    if "accuracy" in c.metrics:
        lines.append(quality(c.metrics["accuracy"], measure))
    if "lowest" in c.metrics:
        lines.append(f"lowest under attack {level(c.metrics['lowest'], measure)}")
    shown = [(name, text) for name, text in _lines(defense) if name in c.metrics]
    if not any((c.value(f"{who}_rejected") or 0.0) > 0 for who in ("honest", "corrupted")):
        shown = [(name, text) for name, text in shown if not name.endswith("_rejected")]
    lines += [text.format(percent(c.metrics[name])) for name, text in shown]
    if "accuracy" in c.metrics:
        lines.append(_recovery(c))
    if c.reason:
        if c.reason not in notes:
            notes.append(c.reason)
        lines.insert(0, f"{'see' if c.status == 'ok' else c.status} ({notes.index(c.reason) + 1})")
    return "\n".join(lines)


def _recovery(c: Cell) -> str:
    """How long the model took to come back, and over how many of the seeds it did."""
    back, seeds = c.metrics.get("rounds_to_recover"), c.metrics["accuracy"].seeds
    if back is None:
        return "does not recover"
    of = "" if back.seeds == seeds else f" ({back.seeds} of {seeds} seeds)"
    return (
        f"recovers after {back.value:.0f} rounds{of}"
        if back.value
        else f"within 5 % of the honest run, once learned{of}"
    )


def _guarantees(records: Sequence[Record], defense: str) -> list[tuple[str, str]]:
    guarantees: dict[str, float] = next((r["guarantees"] for r in records if r["defense"] == defense), {})
    texts = {name: text for card in defense_cards(defense) for name, text in card.guarantees}
    parts = [f"{texts.get(name, name)} {value:.4g}" for name, value in guarantees.items()]
    return [(f"{defense} promises", "; ".join(parts))] if parts else []
