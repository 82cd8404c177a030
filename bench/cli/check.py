"""`bench check`: whether a method keeps the laws of its kind."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import add_data_dir, add_json, add_plugin, data_dir
from fedarena.core.errors import UserError

if TYPE_CHECKING:
    from fedarena.testing import Outcome

STYLES = {"holds": "green", "broken": "bold red", "n/a": "dim"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "check",
        help="whether a method keeps the laws of its kind",
        description="Try a method on each law of its kind, and say which hold. The method's code runs in this process.",
    )
    parser.add_argument(
        "method", metavar="NAME_OR_FILE", help="a name that `bench list` prints, or a .py file with cards"
    )
    parser.add_argument("--laws", metavar="LAW,LAW", help="check these laws alone (default: all of the method's kind)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="an option of the method, such as ratio=0.5"
    )
    add_data_dir(parser)
    add_plugin(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command; 1 if a law is broken, else 0. Raises UserError."""
    options = dict(_option(text) for text in args.set)
    from fedarena.testing import examine

    laws = None if args.laws is None else [name.strip() for name in args.laws.split(",")]
    outcomes = list(examine(args.method, laws=laws, data_dir=data_dir(args), options=options))
    if args.json:
        print_json([_plain(outcome) for outcome in outcomes])
    else:
        _show(outcomes)
    return 1 if any(outcome.status == "broken" for outcome in outcomes) else 0


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserError(f"option 'set' is '{text}', which is not OPTION=VALUE, such as ratio=0.5")
    return name, value


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {name: value for name, value in asdict(outcome).items() if name != "error"}


def _show(outcomes: list[Outcome]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from fedarena.cli.output.terminal import Terminal, stdout_width

    console = Terminal(highlight=False, width=stdout_width(120))
    for kind, method in dict.fromkeys((outcome.kind, outcome.method) for outcome in outcomes):
        some = [outcome for outcome in outcomes if (outcome.kind, outcome.method) == (kind, method)]
        table = Table(box=box.SIMPLE_HEAD, title=f"{kind} {method}", title_justify="left", title_style="bold")
        for column in ("law", "", "what it says; why it says nothing, or is broken"):
            table.add_column(column, overflow="fold")
        for one in some:
            why = f" {one.reason[:1].upper()}{one.reason[1:]}".rstrip(". ")
            told = ".".join((one.says, why, "")) if why else f"{one.says}."
            table.add_row(Text(one.law), Text(one.status, style=STYLES[one.status]), Text(told))
        console.print(table)
        counts = {status: sum(one.status == status for one in some) for status in STYLES}
        console.print(", ".join(f"{count} {status}" for status, count in counts.items() if count), markup=False)
