"""`bench reproduce`: a paper's table beside what is measured here, or the numbers of all papers on one page."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import add_data_dir, add_device, add_json, add_quiet, read_jobs, read_machine, read_seeds
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import plural
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.table import Table
from fedarena.reproduce.tables import TABLES, named, table_of

if TYPE_CHECKING:
    from fedarena.reproduce.page.parts import MeasuredPart, PartKey

NAMED = 16
"""How many parts of a table an error names, at most."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    known = ", ".join(TABLES)
    parser = commands.add_parser(
        "reproduce",
        help="a paper's table beside what is measured here; --all: all of them on one page",
        description="Measure a table or figure of a paper again, or gather the numbers of all papers on one page. "
        f"Known: {known}.",
    )
    parser.add_argument("table", nargs="?", help=f"one of {known}")
    parser.add_argument("--all", action="store_true", help="gather what was measured of all tables on one page")
    parser.add_argument("--measure", action="store_true", help="with --all: measure what is missing, cheapest first")
    parser.add_argument(
        "--within", metavar="MINUTES", help="with --measure: stop after so many minutes, and leave the rest missing"
    )
    parser.add_argument(
        "--report", metavar="FOLDER", help="with --all: the folder of the page (default: reports/reproduction)"
    )
    parser.add_argument(
        "--seeds", metavar="N,...", help="seeds (default: 0; with --all: every seed that was measured, else 0)"
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        help="only the part of the name TEXT, or else those whose names begin so (such as usps; with --all, such as "
        '"two-stage/table4: usps")',
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--jobs",
        metavar="N",
        help="worker processes (default: one a core, on a GPU as many as fit; no effect on results)",
    )
    add_data_dir(parser)
    add_device(parser)
    parser.add_argument(
        "--out",
        default="runs",
        metavar="FOLDER",
        help="folder for what is measured, and read again (default: runs)",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the table as a page of markdown, too")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    if args.all:
        if args.markdown:
            raise UserError("option 'markdown' is of one table, but --all is given, whose page --report places")
        from fedarena.cli.reproduce_all import run_all

        return run_all(args)
    for name in ("measure", "within", "report"):
        if vars(args)[name]:
            raise UserError(f"option '{name}' belongs to --all, which is not given")
    if args.table is None:
        raise UserError(f"name a table or give --all; tables: {', '.join(TABLES)}")
    if args.table not in TABLES:
        raise UserError(f"unknown table '{args.table}'{did_you_mean(args.table, TABLES)}")
    return _run_table(args)


def _run_table(args: argparse.Namespace) -> int:
    from fedarena.cli.output.reproduce import show
    from fedarena.core.files import prepare_folder
    from fedarena.records.record_of import environment

    order = _read_order(args)
    prepare_folder(order.out)
    _prepare_markdown(args.markdown)
    result: dict[str, Any] = {
        "table": order.name,
        "setting": order.table.setting,
        "rows": [],
        "parts": [],
        "environment": environment(),
    }
    present = {} if args.fresh else _present_parts(order)
    done, failed = _measure_rest(order, present, result, args.quiet)
    if failed and not done:
        raise UserError(_failures(failed, len(order.keys)))
    if args.markdown:
        _write_markdown(args, order, result)
    if args.json:
        print_json(result)
    else:
        show(result, order.table.measured, order.path, order.table.compact)
        if present:
            print(_present_text(present, len(order.keys)))
    if order.table.draw is not None:
        picture = order.path.with_suffix(".png")
        order.table.draw(result["rows"], picture)
        if not args.json:
            print(f"Drawn to {picture}")
    if failed:
        print(f"bench: {_failures(failed, len(order.keys))}", file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True)
class _Order:
    """What of a table is wanted, and how it is measured.

    Attributes:
        name, table: the table.
        keys: the wanted parts of the table, in the order in which they are shown.
        out: the folder that holds the parts.
        path: the file with the result.
    """

    name: str
    table: Table
    seeds: Sequence[int]
    keys: Sequence[PartKey]
    machine: Machine
    jobs: int
    out: Path
    path: Path


def _read_order(args: argparse.Namespace) -> _Order:
    """Read the options of one table. Raises UserError."""
    from fedarena.reproduce.page.parts import PartKey
    from fedarena.runs.executors import usual_jobs

    table = table_of(args.table)
    seeds, machine, out = read_seeds(args.seeds or "0"), read_machine(args), Path(args.out)
    if args.device != "cpu" and table.cpu_only:
        raise UserError(f"option 'device' is {args.device}, allowed for {args.table}: cpu: {table.cpu_only}")
    jobs = usual_jobs(args.device) if args.jobs is None else read_jobs(args.jobs)
    pieces = named(table.pieces, args.only or "")
    if not pieces:
        raise UserError(
            f"option 'only' is '{args.only}', allowed: how one of these begins: {_beginnings(table.pieces)}"
        )
    return _Order(
        name=args.table,
        table=table,
        seeds=seeds,
        keys=[PartKey(args.table, piece, seed) for piece in pieces for seed in seeds],
        machine=machine,
        jobs=jobs,
        out=out,
        path=out / f"{args.table.replace('/', '-')}{_suffix(args.only)}.json",
    )


def _beginnings(pieces: Sequence[str]) -> str:
    """The pieces, or of many no more of what their names begin with than fits into an error."""
    words = [piece.split(", ") for piece in pieces]
    for count in range(max(map(len, words)), 0, -1):
        begin = list(dict.fromkeys(", ".join(some[:count]) for some in words))
        if len(begin) <= NAMED:
            return "; ".join(begin)
    return "; ".join(begin[:NAMED]) + f"; … ({len(begin)} in all)"


def _suffix(only: str | None) -> str:
    """The suffix of the result's file. Each choice has its own file, so that one part does not overwrite another."""
    return f"-{re.sub(r'[^A-Za-z0-9.]+', '-', only).strip('-')}" if only else ""


def _prepare_markdown(file: str | None) -> None:
    """Make the folder of the page. Raises UserError where no page can be written."""
    from fedarena.core.files import prepare_folder

    if file:
        if Path(file).is_dir():
            raise UserError(f"option 'markdown' is {file}, which is a folder: name a file")
        prepare_folder(Path(file).parent, "markdown")


def _write_markdown(args: argparse.Namespace, order: _Order, result: Mapping[str, Any]) -> None:
    from fedarena.cli.output.reproduce_markdown import page
    from fedarena.core.files import write_atomically

    text = page(result, order.table.measured, order.table.compact, order.seeds, args.only)
    write_atomically(Path(args.markdown), text)


def _measure_rest(
    order: _Order, present: Mapping[PartKey, MeasuredPart], result: dict[str, Any], quiet: bool
) -> tuple[dict[PartKey, MeasuredPart], dict[PartKey, str]]:
    """Measure the missing parts, and write the result after each one, so that no finished part is lost.

    Returns:
        All parts that are done, and the reason for each that failed.
    """
    from fedarena.cli.output.reproduce import progress_line
    from fedarena.reproduce.page.measuring import measure
    from fedarena.reproduce.page.parts import MeasuredPart, save

    done = dict(present)
    failed: dict[PartKey, str] = {}
    missing = [key for key in order.keys if key not in done]
    _write(order, result, done)
    with progress_line(quiet) as progress:
        for i, outcome in measure(missing, order.machine, order.jobs, progress):
            if isinstance(outcome, str):
                failed[missing[i]] = outcome
                continue
            assert isinstance(outcome, MeasuredPart)  # since there is no limit of time
            save(order.out, outcome)
            done[outcome.key] = outcome
            _write(order, result, done)
    return done, failed


def _failures(failed: Mapping[PartKey, str], wanted: int) -> str:
    """A message on the parts that have no result, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for key, reason in failed.items():
        reasons.setdefault(reason, []).append(key.piece)
    lines = [f"{reason} ({plural(len(names), 'part')}, such as '{names[0]}')" for reason, names in reasons.items()]
    return f"{len(failed)} of {plural(wanted, 'part')} could not be measured: " + "; ".join(lines)


def _present_parts(order: _Order) -> dict[PartKey, MeasuredPart]:
    """The wanted parts that are there and valid, or whose run was measured for another table."""
    from fedarena.reproduce.page.gather import holding
    from fedarena.reproduce.page.shared import elsewhere

    own = {part.key: part for part in holding(order.out, order.name)[0] if part.key in order.keys}
    missing = [key for key in order.keys if key not in own]
    return own | elsewhere(missing, lambda table: holding(order.out, table)[0])


def _present_text(present: Mapping[PartKey, MeasuredPart], wanted: int) -> str:
    shared = sum(bool(part.run_of) for part in present.values())
    other = f" ({plural(shared, 'run')} of other tables)" if shared else ""
    return f"{len(present)} of {wanted} parts were there already{other}; --fresh measures them again"


def _write(order: _Order, result: dict[str, Any], done: Mapping[PartKey, MeasuredPart]) -> None:
    """Put the finished parts into the result, in the order in which they are wanted, and write it."""
    from fedarena.core.files import write_atomically

    parts = [done[key] for key in order.keys if key in done]
    result["rows"] = [{"seed": part.key.seed, **row} for part in parts for row in part.rows]
    result["parts"] = [
        {
            "piece": part.key.piece,
            "seed": part.key.seed,
            "cpu_seconds": part.cpu_seconds,
            "device": part.device,
            "fedarena": part.environment["fedarena"],
            "commit": part.environment.get("commit"),
            **({"run_of": part.run_of} if part.run_of else {}),
        }
        for part in parts
    ]
    write_atomically(order.path, json.dumps(result, indent=2, allow_nan=False) + "\n")
