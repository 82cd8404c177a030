"""The picture of a pairing in which something was guessed that can be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.core.text.figures import Strip
from fedarena.goals.inference_table import table
from fedarena.goals.pairing_table import Cell, Images
from fedarena.goals.text import GoalText
from fedarena.records.results import Gallery, GroupResult


def guesses_figure(results: Sequence[GroupResult], defense: str, attack: str, text: GoalText) -> Images | None:
    """Originals and reconstructions of the first seed, by party; None when nothing was reconstructed."""
    first = results[0].spec.seed
    records = [r for result in results for r in result.records if r["seed"] == first]
    pictures = {g.key: g for result in results for g in result.galleries}
    strips: list[Strip] = []
    for party, row in table(records, defense, text).items():
        cells = {name: c for name, c in row.items() if c is not None}
        strips += _strips(party, cells, pictures, gap=bool(strips))
    if not strips or strips[0].images is None or strips[0].images.dim() != 4:
        return None
    dataset = records[0]["problem"]["dataset"]
    return Images(f"{defense} against {attack} on {dataset}, seed {first}", strips)


def _strips(party: str, cells: Mapping[str, Cell], pictures: Mapping[str, Gallery], gap: bool) -> list[Strip]:
    """The originals of one party and a strip for each cell; none where nothing was reconstructed."""
    shown = {name: pictures.get(c.keys[0]) for name, c in cells.items()}
    originals = [gallery.originals for gallery in shown.values() if gallery is not None]
    if not originals:
        return []
    strips = [Strip(f"{party}: originals", originals[0], gap=gap)]
    for name, gallery in shown.items():
        c = cells[name]
        strips.append(Strip(name, None if gallery is None else gallery.guesses, f"{c.status}: {c.reason}"))
    return strips
