"""The cards of the methods and data sets on a board, with their citations."""

from __future__ import annotations

from fedarena.board.board import Board
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UserError
from fedarena.core.text.markdown import escape, folded, items

KINDS: dict[str, tuple[Kind, ...]] = {
    "Defenses": ("defense", *registry.PARTS),
    "Attacks": ("attack",),
    "Data": ("dataset",),
}


def method_cards(board: Board) -> str:
    """A card for each part of each defense, for each attack and for each data set."""
    labels = {
        "Defenses": board.defenses,
        "Attacks": [c.attack for c in board.cells],
        "Data": [p.dataset for p in board.problems],
    }
    sections = []
    for heading, kinds in KINDS.items():
        names = list(dict.fromkeys(part for label in labels[heading] for part in label.split("+")))
        if names:
            sections.append(f"### {heading}\n\n" + "\n\n".join(_cards(name, kinds) for name in names))
    return "\n\n".join(sections) or "No methods."


def _cards(name: str, kinds: tuple[Kind, ...]) -> str:
    """The cards of this name, one for each kind of method that has it."""
    try:
        cards = [r.card(name) for kind in kinds if name in (r := registry.registries()[kind])]
    except UserError as error:  # a plug-in that is broken on this machine
        return f"**{escape(name)}**: its card cannot be read here: {escape(str(error))}"
    return "\n\n".join(_card(card) for card in cards) or f"**{escape(name)}**: not known where this report was made."


def citation(card: Card) -> str:
    """ "Zhang, Wang (2021): Matrix Sketching …, https://…"; empty where the card cites nothing."""
    who = f"{card.authors} ({card.year})" if card.authors and card.year else card.authors
    return ", ".join(part for part in (": ".join(p for p in (who, card.paper) if p), card.url) if part)


def _card(card: Card) -> str:
    cited = citation(card)
    lines = [f"**{escape(card.name)}**, version {card.version}: {escape(card.title)}"]
    lines.append(f"Source: {_linked(card)}" if cited else "Source: none; it is this package's own or common knowledge.")
    if card.equations:
        lines.append(f"Implements: {escape(card.equations)}.")
    if card.check:
        lines.append(f"Checked: {escape(card.check)}.")
    head = "  \n".join(lines)
    if not card.departures:
        return head
    return f"{head}\n\n" + folded(
        f"Where {card.name} departs from its source" if cited else f"What to know of {card.name}",
        items([escape(d) for d in card.departures]),
    )


def _linked(card: Card) -> str:
    """The citation with its address as a link."""
    text, link = citation(card), f"<{card.url}>"
    return f"{escape(text.removesuffix(card.url))} {link}".strip() if card.url else escape(text)
