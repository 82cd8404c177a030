"""The pages of the documentation, and what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedarena.core.card import Card
from fedarena.core.options import describe_options
from fedarena.core.torchvision_import import declare_operators
from helpers.paths import ROOT

LIBRARIES = {"flower": "flwr", "byzfl": "byzfl", "breaching": "breaching"}
README = ROOT / "README.md"
DOCS = tuple(sorted((ROOT / "docs").glob("*.md")))
MEASURED = tuple(sorted((ROOT / "reports/measured").glob("*.md")))
GENERATED = tuple(sorted((ROOT / "docs/methods").glob("*.md")))
"""The pages that are made from cards."""
PAGES = (README, *DOCS, *MEASURED)
"""README, the documentation without the pages that are made from cards, and what was measured by hand."""

FENCE = re.compile(r"^```(?P<info>\w+(?: long)?)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of code. `sh long` takes minutes, and is only parsed by tests."""


def blocks(page: Path, info: str) -> list[str]:
    """The blocks of a kind."""
    return [match["body"] for match in FENCE.finditer(page.read_text(encoding="utf-8")) if match["info"] == info]


def commands(page: Path, *infos: str) -> list[str]:
    """The commands of its blocks of shell that begin with `bench`, without comments."""
    return [command for info in infos for block in blocks(page, info) for command in commands_of(block)]


def pieces(page: Path) -> Iterator[str]:
    """What its short blocks of shell and of Python do, in the page's order: commands, and code."""
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        if match["info"] == "sh":
            yield from commands_of(match["body"])
        if match["info"] == "python":
            yield match["body"]


def commands_of(block: str) -> list[str]:
    """The commands of a block of shell."""
    lines = block.replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines if "pip install" not in line for part in line.split(" #")[0].split("&&")]
    return [part for part in parts if part.startswith("bench ")]


def require(text: str) -> None:
    """Skip unless the libraries that a command or code names are installed."""
    declare_operators()
    for word, package in LIBRARIES.items():
        if re.search(rf"\b({word}|{package})\b", text):
            pytest.importorskip(package, reason=f"{package} is not installed")


def in_tables(page: Path) -> list[str]:
    """The commands in cells of tables that are nothing else."""
    return re.findall(r"\| `(bench [^`]*)` \|", page.read_text(encoding="utf-8"))


def sentences(page: Path) -> Iterator[str]:
    """The sentences of its text, up to their full stops: without code, tables, links' targets and pictures."""
    text = re.sub(r"```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:    .*|\|.*|#.*|!\[.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "Code", text))
    for paragraph in re.split(r"\n\s*\n|^\s*- ", text, flags=re.MULTILINE):
        yield from sentences_of(paragraph)


def in_pictures(page: Path) -> Iterator[str]:
    """The sentences of what its pictures say to those who do not see them."""
    for text in re.findall(r"!\[([^\]]*)\]", page.read_text(encoding="utf-8")):
        yield from sentences_of(text)


def on_card(card: Card) -> Iterator[str]:
    """The sentences of all that a card says of its method itself: without the titles of papers and their authors."""
    facts = [text for pairs in (card.facts, card.guarantees, card.verdicts) for _, text in pairs]
    options = [option.help for option in describe_options(card.options)]
    promises = [text for group in card.promises for text in group]
    for text in (card.title, card.equations, card.check, *card.departures, *facts, *promises, *options):
        yield from sentences_of(re.sub(r"`[^`]*`", "Code", text))


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text, up to their full stops."""
    yield from filter(None, (s.strip() for s in re.split(r"(?<=[.?!])\s+(?=[A-Z(\[*])", text)))
