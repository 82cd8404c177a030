"""Writes docs/methods: one page for each kind of method, made from the cards.

    python docs/make_methods.py

A test holds the pages to the cards.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fedarena.cli.methods import PLURAL
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.options import describe_options, to_text
from fedarena.core.text.markdown import escape, table
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Comparison, Gathered, gather
from fedarena.reproduce.page.layout import page_of
from fedarena.reproduce.page.of_method import claimed, lines_of
from fedarena.reproduce.page.page import anchor
from fedarena.reproduce.tables import TABLES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/methods"
INTRODUCTION = """# Methods

All that comes with FedArena. The pages are made from the methods' cards, as `bench show` is.

A defense is a protocol, an aggregation rule, or both: `PROTOCOL[+WRAPPER…+RULE]`. A rule alone aggregates FedAvg's
uploads, so DP noise with Krum is `dp-sgd+krum`, not a class of its own. In a rule's place there may be a secure sum:
`baffle+zero-sum`. Poisoning attacks may be wrapped, too: `delayed+label-flip`, `rank-map+alie`.

A protocol, an attack or a data set may have a *usual problem*, which is taken where nothing else is said. `pbpfl`
trains `mlp` with the loss `mse`, since it cannot do with cross-entropy or sigmoids. FedAvg beside it is trained on the
same problem. Losses are `cross-entropy`, `mse` (to one-hot labels) and `regression` (one output): `--set
training.loss=mse`.
"""
HOW: dict[Kind, str] = {
    "defense": "`--defense NAME`. A rule or a secure sum may follow: `--defense dp-sgd+krum`.",
    "aggregator": "`--defense NAME`, alone on FedAvg's uploads, or after a protocol: `--defense two-stage+median`.",
    "secure": "`--defense PROTOCOL+NAME`, as in `--defense baffle+zero-sum`.",
    "attack": "`--attack NAME`. Wrappers come first: `--attack delayed+label-flip`.",
    "dataset": "`--dataset NAME`. `bench data` says which are present, and `bench data fetch NAME` downloads one.",
    "model": "`--model NAME`.",
    "partition": "`--partition NAME`: how the training data are divided among clients.",
}
REPORT = ROOT / "reports/reproduction"
MOST = 6
"""The most lines of published numbers that a method has here."""


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    kinds = {kind: [methods.card(name) for name in methods.names()] for kind, methods in registry.registries().items()}
    built_in = {kind: [card for card in cards if _is_built_in(card)] for kind, cards in kinds.items()}
    return {"README.md": _index(built_in)} | {f"{kind}.md": _page(kind, cards) for kind, cards in built_in.items()}


def _is_built_in(card: Card) -> bool:
    return registry.registries()[card.kind].entry(card.name).origin == registry.BUILT_IN


def _index(kinds: dict[Kind, list[Card]]) -> str:
    parts = [INTRODUCTION]
    for kind, cards in kinds.items():
        rows = [(f"[`{card.name}`]({kind}.md#{card.name})", escape(card.title), _year(card)) for card in cards]
        parts += [f"## {PLURAL[kind]}", "", HOW[kind], "", table(("name", "what it is", "year"), rows), ""]
    toctree = ["```{toctree}", ":hidden:", "", *kinds, "```"]
    return "\n".join([*parts, *toctree]) + "\n"


def _year(card: Card) -> str:
    return str(card.year or "")


def _page(kind: Kind, cards: list[Card]) -> str:
    head = [f"# {PLURAL[kind]}", "", HOW[kind], "", "[All methods](README.md)", ""]
    return "\n".join([*head, *(_method(card) for card in cards)]).rstrip() + "\n"


def _method(card: Card) -> str:
    parts = [f"## {card.name}", "", f"{escape(card.title)}.", "", *_source(card), *_check(card), *_departures(card)]
    parts += [*_published(card), *_facts(card)]
    parts += _options(card)
    return "\n".join(parts)


def _source(card: Card) -> list[str]:
    if not card.paper:
        return []
    who = f"{escape(card.authors)}: " if card.authors else ""
    title = f"[{escape(card.paper)}]({card.url})" if card.url else escape(card.paper)
    what = f" Implemented: {escape(card.equations)}." if card.equations else ""
    return [f"Source: {who}{title}{f', {card.year}' if card.year else ''}.{what}", ""]


def _check(card: Card) -> list[str]:
    """The published number, and where ours stands beside it."""
    if not card.check:
        return []
    page = next((page_of(name) for name in claimed(card) if name in TABLES), "")
    has_page = (REPORT / page).is_file()
    where = f" [The paper's number beside ours](../../reports/reproduction/{page})." if has_page else ""
    return [f"Published, and compared: {escape(card.check)}.{where}", ""]


def _published(card: Card) -> list[str]:
    """A short table of published numbers and ours, where a reproduction has the method."""
    lines = lines_of(card, _gathered())
    if not lines:
        return []
    head = ("table", "setting", "published", "ours", "verdict", "command")
    some = f"{MOST} of {len(lines)} lines, " if len(lines) > MOST else ""
    title = f"Published numbers and ours ({some}[how verdicts come about](../../reports/reproduction/README.md)):"
    return [title, "", table(head, [_line(one) for one in lines[:MOST]]), ""]


def _line(one: Comparison) -> tuple[str, ...]:
    where = f"[{one.table}](../../reports/reproduction/{page_of(one.table)}#{anchor(one.table)})"
    setting = escape(f"{one.published.setting.removeprefix('all, ')}: {one.published.column}")
    return where, setting, escape(one.published.shown), escape(words.number(one)), one.verdict, f"`{one.command}`"


@cache
def _gathered() -> Gathered:
    """The published parts; what is measured elsewhere is not looked for."""
    return gather(REPORT / "nothing", REPORT)


def _departures(card: Card) -> list[str]:
    if not card.departures:
        return []
    return ["Departures from the source:", "", *(f"- {escape(text)}" for text in card.departures), ""]


def _facts(card: Card) -> list[str]:
    usual = [("usual problem", " ".join(f"{flag}={value}" for flag, value in card.usual))] if card.usual else []
    rows = [(escape(label), escape(text)) for label, text in (*card.facts, *usual)]
    return [table(("", ""), rows), ""] if rows else []


def _options(card: Card) -> list[str]:
    group = card.name if card.kind in registry.PARTS else card.kind
    rows = [
        (f"`{group}.{info.name}`", escape(to_text(info.default)), escape(info.allowed), escape(info.help))
        for info in describe_options(card.options)
    ]
    return [table(("option", "default", "allowed", "meaning"), rows), ""] if rows else []


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{FOLDER}: {len(pages())} pages")


if __name__ == "__main__":
    main()
