"""`bench list` and `bench show`: the methods that exist, their sources, options and citations.

Both read cards only, so they import neither torch nor scikit-learn (unless a plug-in's card does).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import add_plugin
from fedarena.core import registry
from fedarena.core.card import KINDS, Card, Kind
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.options import OptionInfo, describe_options, to_text
from fedarena.problem.schedule import Schedule

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Subparsers = Any  # argparse gives its own type no public name

TRAINING = "training"
PLURAL: dict[Kind, str] = {
    "defense": "Defenses",
    "aggregator": "Aggregation rules",
    "secure": "Secure aggregation",
    "attack": "Attacks",
    "dataset": "Data sets",
    "model": "Models",
    "partition": "Partitions",
}


def add_parser(subparsers: Subparsers) -> None:
    """Add `list` and `show`; each sets `run`, a function of the parsed arguments that returns the exit code."""
    listing = subparsers.add_parser("list", help="list defenses, attacks, data sets, models and partitions")
    listing.add_argument("kind", nargs="?", metavar="KIND", help=f"one of: {', '.join(KINDS)} (default: all)")
    listing.add_argument("--json", action="store_true", help="print JSON")
    add_plugin(listing)
    listing.set_defaults(run=run_list)
    showing = subparsers.add_parser("show", help="show a method's citation, departures, facts and options")
    showing.add_argument("name", metavar="NAME", help=f"a name that `bench list` prints, or {TRAINING}")
    showing.add_argument("--json", action="store_true", help="print JSON")
    add_plugin(showing)
    showing.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> int:
    """Print every method of one kind or of all. Raises UserError for an unknown kind."""
    rows = rows_of(args.kind)
    if args.json:
        return print_json(rows)
    console = _console()
    for kind, some in rows.items():
        if some:
            console.print(_methods_table(PLURAL[kind], some))
    console.print("`bench show NAME` prints a method's citation and options.", style="dim", markup=False)
    return 0


def rows_of(kind: str | None) -> dict[Kind, list[dict[str, Any]]]:
    """The rows of one kind or of all. Raises UserError for an unknown kind."""
    kinds = [_kind(kind)] if kind else list(KINDS)
    return {kind: list(listed(registry.registries()[kind])) for kind in kinds}


def listed(methods: registry.Registry) -> Iterator[dict[str, Any]]:
    """One row a name: status `ok`, `broken` (its card cannot be read) or `contested` (claimed more than once)."""
    for name in methods.names():
        claims = methods.claims(name)
        row: dict[str, Any] = {"name": name, "origin": " and ".join(claim.origin for claim in claims)}
        try:
            card = methods.card(name)
        except UserError as error:
            status = "contested" if len(claims) > 1 else "broken"
            yield row | {"status": status, "reason": str(error)}
        else:
            about = {key: getattr(card, key) for key in ("title", "paper", "authors", "year", "version")}
            goal = {"goal": card.goal} if card.kind == "attack" else {}
            yield row | {"status": "ok", **goal, **about}


def run_show(args: argparse.Namespace) -> int:
    """Print every card of a name, or the options of the training schedule. Raises UserError for an unknown name."""
    described_methods = [_training()] if args.name == TRAINING else [described(card) for card in _find(args.name)]
    if args.json:
        return print_json({"cards": described_methods})
    console = _console()
    for card in described_methods:
        _print_card(console, card)
    return 0


def described(card: Card) -> dict[str, Any]:
    """A card as plain data, its options included."""
    origin = registry.registries()[card.kind].entry(card.name).origin
    facts = {key: getattr(card, key) for key in ("title", "version", "paper", "authors", "year", "url", "equations")}
    return {
        "kind": card.kind,
        "name": card.name,
        "origin": origin,
        **facts,
        "departures": list(card.departures),
        "check": card.check,
        "facts": [list(fact) for fact in card.facts],
        "options": [
            _option(card.name if card.kind in registry.PARTS else card.kind, info)
            for info in describe_options(card.options)
        ],
    }


def _find(name: str) -> list[Card]:
    if not any(name in methods for methods in registry.registries().values()):
        names = {n for methods in registry.registries().values() for n in methods.names()}
        raise UserError(f"unknown method {name!r}{did_you_mean(name, {*names, TRAINING}, registry.all_aliases())}")
    return registry.find_any(name)


def _training() -> dict[str, Any]:
    return {
        "kind": "schedule",
        "name": TRAINING,
        "origin": registry.BUILT_IN,
        "title": "How a federation trains: rounds, batches, local work and optimisers",
        "options": [_option(TRAINING, info) for info in describe_options(Schedule)],
    }


def _option(group: str, info: OptionInfo) -> dict[str, Any]:
    default = to_text(info.default)
    return {
        "name": info.name,
        "type": info.type,
        "default": info.default,
        "allowed": info.allowed,
        "help": info.help,
        "set": f"--set {group}.{info.name}={default}",
    }


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if text in (kind, f"{kind}s"):
            return kind
    raise UserError(f"unknown kind {text!r}, allowed: {', '.join(KINDS)}")


# -- printing --------------------------------------------------------------------------------------


def _console() -> Console:
    from fedarena.cli.output.terminal import Terminal, stdout_width

    return Terminal(highlight=False, width=stdout_width(120))


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _methods_table(title: str, rows: list[dict[str, Any]]) -> Table:
    from rich.text import Text

    foreign = any(row["origin"] != registry.BUILT_IN for row in rows)
    table = _table("name", "what", "source", *(["from"] if foreign else []))
    table.title = title
    for row in rows:
        ok = row["status"] == "ok"
        what = Text(row["title"]) if ok else Text(f"{row['status']}: {row['reason']}", style="red")
        source = Text(_source(row) if ok else "")
        table.add_row(Text(row["name"]), what, source, *([Text(row["origin"])] if foreign else []))
    return table


def _source(row: dict[str, Any]) -> str:
    first, *others = [name.strip() for name in row["authors"].split(",")]
    who = first if not others else f"{first}, {others[0]}" if len(others) == 1 else f"{first} et al."
    return " ".join(str(part) for part in (who, row["year"]) if part)


def _print_card(console: Console, card: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{card['kind']} {card['name']}: {card['title']}", style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _lines(card):
        grid.add_row(Text(label), Text(text))
    if grid.row_count:
        console.print(grid)
    if not card["options"]:
        console.print("no options\n")
        return
    table = _table("option", "default", "allowed", "meaning")
    for option in card["options"]:
        name = option["set"].removeprefix("--set ").partition("=")[0]
        cells = (name, to_text(option["default"]), _allowed(option), option["help"])
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    kind = "defense" if card["kind"] in registry.PARTS else card["kind"]
    using = "" if card["name"] == TRAINING else f"--{kind} {card['name']} "
    # An option whose default is empty would show a command that changes nothing.
    shown = next((o["set"] for o in card["options"] if not o["set"].endswith("=")), card["options"][0]["set"])
    console.print(Text(f"To change one: bench run {using}{shown}\n", style="dim"))


def _lines(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if card["origin"] != registry.BUILT_IN:
        yield "from", f"{card['origin']} (a plug-in)"
    if card.get("paper"):
        year = f" {card['year']}" if card["year"] else ""
        yield "paper", f"{card['authors']}: {card['paper']}{year}"
    for label in ("url", "equations", "check", "version"):
        if card.get(label):
            yield label, str(card[label])
    for departure in card.get("departures", ()):
        yield "departs", departure
    for label, text in card.get("facts", ()):
        yield label, text


def _allowed(option: dict[str, Any]) -> str:
    """Range and type in one cell: the range of a number already names its type."""
    allowed, kind = str(option["allowed"]), str(option["type"])
    return allowed if allowed.startswith(kind) or kind in ("text", "boolean") else f"{kind}: {allowed}"
