"""The picture of estimates: cosine and relative L2 error round by round, for each party and form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.core.text.figures import Line, Panel
from fedarena.goals.inference_table import table
from fedarena.goals.pairing_table import Panels
from fedarena.goals.text import GoalText
from fedarena.records.schema import Record

Series = Mapping[str, Sequence[Sequence[float]]]
"""Curves by name, as points [round, value]."""

OWN = "own upload in the others' place"
MEASURES = {"cosine": "cosine", "relative_l2": "relative L2 error"}


def estimate_figure(records: Sequence[Record], defense: str, attack: str, text: GoalText) -> Panels | None:
    """A column of panels a party, cosine above relative L2 error, of the first seed; None without estimates."""
    seed = min(r["seed"] for r in records)
    of_seed = [r for r in records if r["seed"] == seed]
    by_key = {r["key"]: r for r in of_seed}
    rows: list[list[Panel]] = [[], []]
    for party, cells in table(of_seed, defense, text).items():
        shown = {title: by_key[c.keys[0]]["series"] for title, c in cells.items() if c is not None}
        series = {title: curves for title, curves in shown.items() if curves}
        if series:
            for row, name in zip(rows, MEASURES, strict=True):
                row.append(_panel(party, name, series))
    if not rows[0]:
        return None
    dataset = of_seed[0]["problem"]["dataset"]
    return Panels(f"{defense} against {attack} on {dataset}, seed {seed}", rows)


def _panel(party: str, name: str, series: Mapping[str, Series]) -> Panel:
    """One measure of one party: a curve for each column, and that of a client's own upload where there is one."""
    lines = [Line(column, *_points(curves[name])) for column, curves in series.items()]
    control = _points(list(series.values())[-1][f"control_{name}"])
    if name == "cosine" and any(control[1]):
        lines.append(Line(OWN, *control))
    title = MEASURES[name]
    return Panel(f"{party}: {title}", lines=lines, x="round", y=title, log=name == "relative_l2")


def _points(series: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [t for t, _ in series], [value for _, value in series]
