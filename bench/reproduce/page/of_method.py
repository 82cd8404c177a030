"""The lines of the pages that are about one method: its own claim first, then others that name it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, zip_longest

from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.reproduce.page.gather import Comparison, Gathered
from fedarena.reproduce.page.layout import paper_of
from fedarena.reproduce.page.tallies import COMPARED

KINDS: tuple[Kind, ...] = ("defense", "aggregator", "secure", "attack")
"""The kinds of methods that lines are about. Data sets, models and partitions are what these are tried on."""
REPRODUCE = re.compile(r"bench reproduce ([\w/-]+)")
FIRST = 4
"""How many lines of its own claim come before lines of other tables."""
SPELLED = {"trmean": "trimmed-mean"}
"""Words of settings that stand for a method and are not its name."""
ELSE = {"baffle/figure5": "gaussian", "dbcl/figure3": "fedavg"}
"""Table → a word of its settings that is a method's name and means another thing there."""


def claimed(card: Card) -> list[str]:
    """The tables in which a card says that its source's number is compared."""
    return REPRODUCE.findall(card.check)


def lines_of(card: Card, gathered: Gathered) -> list[Comparison]:
    """The lines about a method that are measured and comparable; none for what is tried with methods.

    A line is about the methods that its setting names, and if these are no defenses, about the protocol of its paper.
    All lines of a table that an attack's card names are about the attack. Tables take turns, each with its lines in
    order, so that no verdict decides which lines come first.
    """
    if card.kind not in KINDS:
        return []
    about = {table: [one for one in lines if _is_about(one, card)] for table, lines in gathered.comparisons.items()}
    own = _in_turns([about.pop(table, []) for table in claimed(card)])
    others = _in_turns(list(about.values()))
    return [*own[:FIRST], *others, *own[FIRST:]]


def _in_turns(tables: Sequence[Sequence[Comparison]]) -> list[Comparison]:
    return [one for one in chain.from_iterable(zip_longest(*tables)) if one is not None]


def _is_about(one: Comparison, card: Card) -> bool:
    if one.verdict not in COMPARED:
        return False
    named = _named(one)
    if card.kind == "attack":
        return card.name in named["attack"] or one.table in claimed(card)
    if card.name in named[card.kind]:
        return True
    defended = any(named[kind] for kind in KINDS if kind != "attack")
    return not defended and card.kind == "defense" and card.name == paper_of(one.table)


def _named(one: Comparison) -> dict[Kind, set[str]]:
    """The methods that a line's setting names, by kind."""
    values = (str(value) for _, value in one.published.row)
    words = re.split(r"[,;:+()]", ", ".join([one.published.piece, *values]).lower())
    names = {word.strip().replace(" ", "-") for word in words} - {ELSE.get(one.table, "")}
    names = {SPELLED.get(name, name) for name in names}
    return {kind: names & set(registry.registries()[kind].names()) for kind in KINDS}
