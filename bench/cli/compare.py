"""`bench compare`: has a score changed by more than its noise?"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import add_json
from fedarena.core.errors import UserError

if TYPE_CHECKING:
    from fedarena.board.gate.comparison import Comparison, Item, Rules

SHOWN = 40
"""Findings that are printed; files and --json hold all."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "compare",
        help="whether scores got worse by more than their noise: the gate for CI",
        description="Compare a board with an earlier one, cell by cell, over the seeds that both have. Exit code 0:"
        " passed; 1: there are findings; 2: bad input.",
        epilog="Findings are: a score that changed by more than its noise and by an effect that matters, up or down; a"
        " cell or a seed that is missing or measured nothing; another experiment; other guarantees; more bytes.",
    )
    parser.add_argument("base", metavar="BASE", help="suite, folder of records, or board.json before the change")
    parser.add_argument("new", metavar="NEW", help="the same after the change")
    parser.add_argument(
        "--false-alarm",
        default="0.05",
        metavar="RATE",
        help="chance that any score of a board is a finding although nothing changed (default: 0.05)",
    )
    parser.add_argument(
        "--effect",
        metavar="NAME=SIZE,...",
        help="the least change of a score that matters: of privacy (default: 0.1), integrity (0.1), utility (0.05),"
        " and mean (0.02), over many cells of a defense or an attack",
    )
    parser.add_argument("--losses-only", action="store_true", help="scores that rose are no findings")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="every score that is not identical is a finding: for changes of code that must not change any number,"
        " measured on the same machine",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for a pull request")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML with a test case for each cell")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare; 0 passed, 1 there are findings. Raises UserError."""
    rules = read_rules(args)
    from fedarena.board.gate.compare import compare
    from fedarena.board.gate.junit import junit
    from fedarena.board.gate.markdown import markdown
    from fedarena.board.load import find_folder, load_board
    from fedarena.core.files import write_atomically

    base, new = (load_board(find_folder(name)) for name in (args.base, args.new))
    comparison = compare(base, new, rules)
    for path, text in ((args.markdown, markdown), (args.junit, junit)):
        if path:
            write_atomically(Path(path), text(comparison))
    if args.json:
        print_json(as_json(comparison))
    else:
        show(comparison)
    return 1 if comparison.findings else 0


def read_rules(args: argparse.Namespace) -> Rules:
    """What counts as a finding, from the options. Raises UserError."""
    from fedarena.board.gate.comparison import Rules

    rate = _number(args.false_alarm)
    if not 0 < rate < 1:
        raise UserError(f"option '--false-alarm' is '{args.false_alarm}', allowed: a rate between 0 and 1")
    effects = Rules().effects if args.effect is None else Rules().effects | _read_effects(args.effect, Rules().effects)
    if args.exact and args.losses_only:
        raise UserError("option '--exact' is given with '--losses-only', allowed: one of them")
    return Rules(false_alarm=rate, effects=effects, losses_only=args.losses_only, exact=args.exact)


def _read_effects(text: str, known: Collection[str]) -> dict[str, float]:
    """The least changes that matter, from "privacy=0.05,mean=0.01". Raises UserError."""
    effects = {}
    for word in text.split(","):
        name, _, size = word.strip().partition("=")
        if name not in known or not 0 < _number(size) <= 1:
            allowed = f"NAME=SIZE, NAME one of {', '.join(known)}, SIZE above 0, at most 1"
            raise UserError(f"option '--effect' is '{text}', allowed: {allowed}")
        effects[name] = _number(size)
    return effects


def as_json(c: Comparison) -> dict[str, Any]:
    """Everything that was compared; findings also by themselves."""
    from fedarena.board.gate.wording import caveats, verdict

    return {
        "passed": not c.findings,
        "verdict": verdict(c),
        "base": c.base,
        "new": c.new,
        "false_alarm": c.rules.false_alarm,
        "effects": c.rules.effects,
        "losses_only": c.rules.losses_only,
        "exact": c.rules.exact,
        "counts": c.counts,
        "findings": [_item(item) for item in c.findings],
        "items": [_item(item) for item in c.items],
        "added": list(c.added),
        "caveats": caveats(c),
    }


def show(c: Comparison) -> None:
    """Print verdict, findings and counts."""
    from rich.text import Text

    from fedarena.board.gate.wording import NUMBERS, caveats, notes, numbers, tally, verdict
    from fedarena.cli.output.rows import show_rows
    from fedarena.cli.output.terminal import Terminal, stdout_width

    # A pipe has no width to fit, so rows are not broken there.
    console = Terminal(file=sys.stdout, width=stdout_width(240))
    console.print(Text(verdict(c), style="bold red" if c.findings else "bold green"))
    console.print(Text(f"{c.new} compared with {c.base}"))
    if c.findings:
        rows = [(item.name, "; ".join(item.findings), *numbers(item)) for item in c.findings[:SHOWN]]
        show_rows(console, ("where", "what", *NUMBERS), rows)
        if len(c.findings) > SHOWN:
            console.print(Text(f"… and {len(c.findings) - SHOWN} more (--markdown, --junit and --json have them)"))
    for line in (tally(c), *notes(c)[:10], *caveats(c)):
        console.print(Text(line))


def _item(item: Item) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": item.group,
        "where": item.name,
        "findings": item.findings,
        "told": [change.words for change in item.changes if not change.finding],
        "outcome": item.verdict.outcome if item.verdict else "none",
        "command": item.command,
    }
    if item.verdict is None:
        return row | {"reason": item.reason}
    v, c = item.verdict, item.verdict.contrast
    scores = {"seeds": list(c.seeds), "base": list(c.base), "new": list(c.new)}
    return row | scores | {"difference": c.difference, "half_width": v.half, "p": v.p, "effect": c.effect}


def _number(text: str) -> float:
    """A number, or NaN, which no range allows."""
    try:
        return float(text)
    except ValueError:
        return math.nan
