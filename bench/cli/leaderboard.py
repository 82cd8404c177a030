"""`bench leaderboard`: the ranking of defenses as a table, markdown, JSON, CSV or a web page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.core.errors import UserError
from fedarena.core.text.numbers import plural
from fedarena.core.threat import KNOWLEDGE

if TYPE_CHECKING:
    from fedarena.board.board import Board
    from fedarena.board.threat_filter import ThreatFilter
    from fedarena.board.weights import Weights

FORMATS = ("table", "md", "json", "csv", "html")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "leaderboard",
        help="rank the defenses of a suite's or a folder's records",
        description="Rank defenses by their records, and recommend one against the threats that you have.",
        epilog='For "malicious clients, curious server": bench leaderboard smoke --threats own,server',
    )
    parser.add_argument(
        "board",
        nargs="?",
        default="runs",
        metavar="SUITE",
        help="a suite, a folder of `bench run` or `bench suite run`, or a board.json (default: the folder runs)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="json is the published form, csv has one row for each cell, html is a web page (default: the ending of "
        "the file after --out, otherwise table)",
    )
    parser.add_argument(
        "--threats",
        metavar="NAME,...",
        help="only these: curious parties (server, client, eavesdropper, outsider) and what corrupted clients know "
        f"({', '.join(KNOWLEDGE)}); parties alone mean that no client is corrupted, knowledge alone that no party is "
        "curious (default: all, without an axis that no attack is on)",
    )
    parser.add_argument(
        "--weights",
        metavar="AXIS=NUMBER,...",
        help="rank by this weighted mean of utility, integrity and privacy, such as utility=1,integrity=2,privacy=1 "
        "(default: by the lowest of them)",
    )
    parser.add_argument("--problem", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        metavar="BOARD",
        help="cells that others measured on the same problems join the board; may be repeated",
    )
    parser.add_argument("--out", metavar="FILE", help="write to this file instead of printing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command. Raises UserError."""
    out = Path(args.out) if args.out else None
    form = args.format or _format_of(out)
    if form == "html" and out is None and sys.stdout.isatty():
        raise UserError("option 'out' is not given, and a web page cannot be shown in a terminal: add --out board.html")
    if args.weights is not None and form in ("json", "csv"):
        raise UserError(f"option 'weights' does nothing with the format {form}, which has no ranks: leave it out")
    board, where = _read(args)
    threats, weights = chosen(args, board)
    if form == "table" and out is None:
        from fedarena.board.leaderboard import render
        from fedarena.cli.output.leaderboard import show
        from fedarena.cli.output.terminal import Terminal, stdout_width

        console = Terminal(file=sys.stdout, width=stdout_width(160))
        show(render(board, threats, weights), commands(args), console)
        return 0
    text = _text(board, (threats, weights), form, where, commands(args))
    if out is None:
        print(text, end="")
        return 0
    from fedarena.core.files import write_atomically

    write_atomically(out, text)
    print(f"{plural(len(board.defenses), 'defense')}, {plural(len(board.cells), 'cell')}: {out}")
    return 0


def _read(args: argparse.Namespace) -> tuple[Board, Path]:
    """The board, and where the results are. Raises UserError."""
    from fedarena.board.load import find_folder, load_board
    from fedarena.board.merge import merge
    from fedarena.board.threat_filter import read_threat_filter
    from fedarena.board.weights import read_weights

    read_threat_filter(args.threats)  # reports bad input before anything is read
    if args.weights is not None:
        read_weights(args.weights)
    where = find_folder(args.board)
    board = load_board(where)
    if args.others:
        board = merge(board, [load_board(find_folder(name)) for name in args.others])
    return board, where


def chosen(args: argparse.Namespace, board: Board) -> tuple[ThreatFilter, Weights | None]:
    """The threats that count on a board, and the weights of the reader, if any. Raises UserError."""
    from fedarena.board.threat_filter import read_threat_filter, threats_on
    from fedarena.board.weights import read_weights, require_weight_on

    known = [p.name for p in board.problems]
    for name in args.problem:
        if name not in known:
            raise UserError(f"option 'problem' is '{name}', allowed: {', '.join(known) or 'none, the board is empty'}")
    threats = read_threat_filter(args.threats, args.problem)
    if args.threats is None:
        threats = threats_on(board, args.problem)
    if args.weights is None:
        return threats, None
    weights = read_weights(args.weights)
    require_weight_on(threats.axes, weights)
    return threats, weights


def commands(args: argparse.Namespace) -> list[str]:
    """The command that makes this leaderboard, and the one that makes its web page."""
    import shlex

    words = ["bench", "leaderboard", args.board, *(["--threats", args.threats] if args.threats else [])]
    words += ["--weights", args.weights] if args.weights else []
    words += [word for name in args.problem for word in ("--problem", name)]
    line = shlex.join([*words, *(word for name in args.others for word in ("--with", name))])
    return [line, f"{line} --format html --out board.html"]


def _format_of(out: Path | None) -> str:
    """The format that the ending of a file names; `table` for .txt, no ending and no file."""
    ending = out.suffix[1:].lower() if out else ""
    if ending in ("", "txt"):
        return "table"
    if ending not in FORMATS:
        endings = ", ".join(f".{name}" for name in (*(f for f in FORMATS if f != "table"), "txt"))
        raise UserError(f"option 'out' is {out}, which ends in none of {endings}: choose one, or say --format")
    return ending


def _text(
    board: Board, chosen: tuple[ThreatFilter, Weights | None], form: str, where: Path, commands: list[str]
) -> str:
    """The leaderboard in a format.

    Args:
        chosen: the threats that count, and the weights.
    """
    threats, weights = chosen
    if form == "json":
        from fedarena.board.published import to_json
        from fedarena.board.threat_filter import within

        return to_json(within(board, threats))
    if form == "csv":
        from fedarena.board.frame import to_csv
        from fedarena.board.threat_filter import within

        return to_csv(within(board, threats))
    if form == "html":
        from fedarena.board.page.html import page as web_page

        return web_page(board, threats, where if where.is_dir() else where.parent, commands, weights)
    from fedarena.board.leaderboard import render

    if form == "md":
        from fedarena.board.markdown import page

        return page(render(board, threats, weights), commands)
    from fedarena.cli.output.leaderboard import plain

    return plain(render(board, threats, weights), commands)
