"""The picture of a pairing in which something was guessed that can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedarena.cli.output.pairing_table import table
from fedarena.core.text.figures import Strip, gallery
from fedarena.records.results import GroupResult


def draw_guesses(results: Sequence[GroupResult], defense: str, attack: str, path: Path) -> Path | None:
    """Originals and reconstructions of the first seed, by party; None when nothing was reconstructed."""
    first = results[0].spec.seed
    records = [r for result in results for r in result.records if r["seed"] == first]
    pictures = {g.key: g for result in results for g in result.galleries}
    strips: list[Strip] = []
    for party, cells in table(records, defense).items():
        originals = [pictures[c.keys[0]].originals for c in cells.values() if c is not None and c.keys[0] in pictures]
        if not originals:
            continue
        strips.append(Strip(f"{party}: originals", originals[0], gap=bool(strips)))
        for name, c in cells.items():
            if c is not None:
                images = pictures[c.keys[0]].guesses if c.keys[0] in pictures else None
                strips.append(Strip(name, images, f"{c.status}: {c.reason}"))
    if not strips or strips[0].images is None or strips[0].images.dim() != 4:
        return None
    dataset = records[0]["problem"]["dataset"]
    gallery(strips, f"{defense} against {attack} on {dataset}, seed {first}", path)
    return path
