"""Records of one pairing → what the defense promises in its runs, such as ε and δ, in words; whatever the attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter

from fedarena.core.card import Card
from fedarena.federation.compose import defense_cards
from fedarena.records.schema import Record


def promises(records: Sequence[Record], defense: str) -> str:
    """A line; empty for a defense that promises nothing.

    Sizes of clients may differ from seed to seed, and with them the numbers: these are of the first record.
    """
    guarantees: Mapping[str, float] = next((r["guarantees"] for r in records if r["defense"] == defense), {})
    if not guarantees:
        return ""
    cards = defense_cards(defense)
    sentences = [text for card in cards for text in _sentences(card, guarantees)]
    return f"{defense} promises: {' '.join(sentences) or _numbers(cards, guarantees)}"


def _sentences(card: Card, guarantees: Mapping[str, float]) -> list[str]:
    """Of each group of the card the first text whose numbers there are."""
    values = {name: f"{value:.4g}" for name, value in guarantees.items()}
    found = []
    for group in card.promises:
        fitting = [
            text for text in group if {name for _, name, _, _ in Formatter().parse(text) if name} <= values.keys()
        ]
        found += [text.format(**values) for text in fitting[:1]]
    return found


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def _numbers(cards: Sequence[Card], guarantees: Mapping[str, float]) -> str:
    texts = {name: text for card in cards for name, text in card.guarantees}
    return "; ".join(f"{texts.get(name, name)} {value:.4g}" for name, value in guarantees.items())
