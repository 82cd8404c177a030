"""The picture of a pairing in which something was guessed that can be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.core.text.figures import Strip
from fedarena.goals.inference_table import table
from fedarena.goals.pairing_table import Images
from fedarena.goals.text import GoalText
from fedarena.records.results import GroupResult


def guesses_figure(results: Sequence[GroupResult], defense: str, attack: str, text: GoalText) -> Images | None:
    """Originals and reconstructions of the first seed, by party; None when nothing was reconstructed."""
    first = results[0].spec.seed
    records = [r for result in results for r in result.records if r["seed"] == first]
    pictures = {g.key: g for result in results for g in result.galleries}
    strips: list[Strip] = []
    for party, cells in table(records, defense, text).items():
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
    return Images(f"{defense} against {attack} on {dataset}, seed {first}", strips)
