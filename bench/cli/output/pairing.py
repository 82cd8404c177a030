"""A pairing of a defense and an attack as `bench run` prints and draws it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from fedarena.cli.output.rows import show_rows
from fedarena.cli.output.terminal import Terminal
from fedarena.core.text.figures import curves, gallery, panels
from fedarena.core.text.numbers import plural
from fedarena.goals.by_client import by_client
from fedarena.goals.nodes import OWN_MODELS, nodes_of
from fedarena.goals.pairing_table import CellText, Images, PairingTable, Panels
from fedarena.goals.pairing_table import Figure as Content
from fedarena.goals.promises import promises
from fedarena.records.schema import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 110
"""Columns where output goes to a file or a page."""


def _heading(console: Terminal, records: Sequence[Record], defense: str, attack: str) -> None:
    """Print which defense met which attack on which problem."""
    problem, training = records[0]["problem"], records[0]["options"]["training"]
    seeds, epochs = sorted({r["seed"] for r in records}), training["local_epochs"]
    local = "FedSGD" if epochs == 0 else f"FedAvg, {epochs} local epoch{'s' if epochs > 1 else ''}"
    acting = any(r["attacker_knowledge"] or r["party"] == "corrupted-clients" for r in records)
    where = "" if acting else ", honest here"
    poisoned = f", {problem['corrupted']} corrupted{where} (the server expects {problem['assumed_corrupted']})"
    console.print(
        f"[bold]{defense}[/bold] against [bold]{attack}[/bold] on {problem['dataset']}, model {problem['model']}, "
        f"{problem['clients']} clients{poisoned if problem['corrupted'] else ''}, {local}, "
        f"batch {training['batch_size']}, {training['rounds']} rounds, "
        f"{'' if training['loss'] == 'cross-entropy' else 'loss ' + training['loss'] + ', '}"
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}",
        highlight=False,
    )


def _marks(console: Terminal, records: Sequence[Record]) -> None:
    """Print what trials are marked with, and whether the data are a subset."""
    problem = records[0]["problem"]
    marked: dict[str, dict[str, None]] = {}
    for record in records:
        run = record["defense"] + (f" under {record['attack']}" if record["attacker_knowledge"] else "")
        for mark in record["warnings"]:
            marked.setdefault(mark, {})[run] = None
    for mark, runs in marked.items():
        console.print(f"[bold]Marked[/bold] ({', '.join(runs)}): {mark}.", highlight=False)
    if problem["data"]["subset"]:
        console.print(f"Data: a subset, {problem['data']['subset']}.", highlight=False)


def show(console: Terminal, table: PairingTable, records: Sequence[Record], defense: str, attack: str) -> None:
    """Print the verdict, the table, its notes and sentences, and the remarks."""
    _heading(console, records, defense, attack)
    console.print(f"[bold]Verdict.[/bold] {escape(table.verdict)}", highlight=False)
    _marks(console, records)
    rows = [(name, *map(_text, cells)) for name, cells in table.rows]
    show_rows(console, (table.title, *table.columns), rows, ruled=True)
    for i, note in enumerate(table.notes, 1):
        console.print(f"  ({i}) {note}", markup=False, highlight=False)
    further = OWN_MODELS if any(map(nodes_of, records)) else "", by_client(records), promises(records, defense)
    for sentence in filter(None, (*table.sentences, *further, *table.remarks)):
        console.print(sentence, markup=False, highlight=False)


def show_files(
    console: Terminal, records: Sequence[Record], folder: Path, picture: Path | None, transcripts: str | None = None
) -> None:
    """Print where the files are."""
    console.print(
        f"Records: {folder / 'records'} ({plural(len(records), 'file')})", markup=False, highlight=False, soft_wrap=True
    )
    if picture is not None:
        console.print(f"Picture: {picture}", markup=False, highlight=False, soft_wrap=True)
    if transcripts is not None:
        console.print(f"Transcripts: {transcripts}", markup=False, highlight=False, soft_wrap=True)


def _text(cell: CellText) -> str:
    return "\n".join([*cell.lines, *([f"by {cell.reading}"] if cell.reading else [])])


def drawn(content: Content) -> Figure:
    """A goal's picture as a figure."""
    if isinstance(content, Images):
        return gallery(content.strips, content.title)
    if isinstance(content, Panels):
        return panels(content.rows, content.title)
    return curves(content.lines, content.title, content.x, content.y)
