"""The picture of estimates: cosine and relative L2 error round by round, for each party and form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedarena.cli.output.pairing_table import table
from fedarena.core.text.figures import Line, Panel, panels
from fedarena.records.schema import Record

OWN = "own upload in the others' place"
MEASURES = {"cosine": "cosine", "relative_l2": "relative L2 error"}


def draw_estimates(records: Sequence[Record], defense: str, attack: str, path: Path) -> Path | None:
    """A column of panels a party, cosine above relative L2 error, of the first seed; None without estimates."""
    seed = min(r["seed"] for r in records)
    mine = [r for r in records if r["seed"] == seed]
    by_key = {r["key"]: r for r in mine}
    rows: list[list[Panel]] = [[], []]
    for party, cells in table(mine, defense).items():
        found = {title: by_key[c.keys[0]] for title, c in cells.items() if c is not None}
        drawn = {title: r["series"] for title, r in found.items() if r["series"]}
        if not drawn:
            continue
        for at, (name, title) in enumerate(MEASURES.items()):
            lines = [Line(where, *_points(series[name])) for where, series in drawn.items()]
            control = _points(list(drawn.values())[-1][f"control_{name}"])
            if name == "cosine" and any(control[1]):
                lines.append(Line(OWN, *control))
            rows[at].append(Panel(f"{party}: {title}", lines, "round", title, log=name == "relative_l2"))
    if not rows[0]:
        return None
    dataset = mine[0]["problem"]["dataset"]
    panels(rows, f"{defense} against {attack} on {dataset}, seed {seed}", path)
    return path


def _points(series: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [t for t, _ in series], [value for _, value in series]
