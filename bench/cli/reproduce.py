"""`bench reproduce`: a paper's table beside what is measured here, or the numbers of all papers on one page."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.common_args import add_data_dir, add_device, add_json, add_quiet
from fedarena.cli.problem_args import read_seeds, where
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.text.plural import plural
from fedarena.problem.defaults import read_integer
from fedarena.reproduce import TABLES

if TYPE_CHECKING:
    from fedarena.reproduce.page.parts import Asked, Part


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    known = ", ".join(TABLES)
    parser = commands.add_parser(
        "reproduce",
        help="a paper's table beside what is measured here; --all: all of them on one page",
        description="Measure a table or figure of a paper anew, or gather the numbers of all papers on one page. "
        f"Known: {known}.",
    )
    parser.add_argument("table", nargs="?", help=f"one of {known}")
    parser.add_argument("--all", action="store_true", help="gather what was measured of all tables on one page")
    parser.add_argument("--measure", action="store_true", help="of --all: measure what is missing, cheapest first")
    parser.add_argument("--within", metavar="MINUTES", help="of --measure: stop then, and leave the rest missing")
    parser.add_argument(
        "--report", metavar="FOLDER", help="of --all: where the page goes (default: reports/reproduction)"
    )
    parser.add_argument(
        "--seeds", metavar="N,...", help="seeds (default: 0; of --all: every seed that is there, 0 where none is)"
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        help='only the parts whose name begins with TEXT (such as usps; of --all, such as "two-stage/table4: usps")',
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--jobs", metavar="N", help="worker processes (default: one a core; no effect on results)")
    add_data_dir(parser)
    add_device(parser)
    parser.add_argument(
        "--out", default="runs", metavar="FOLDER", help="what is measured is kept here, and read again (default: runs)"
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
        if getattr(args, name):
            raise UserError(f"option '{name}' belongs to --all, which is not given")
    if args.table is None:
        raise UserError(f"name a table or give --all; tables: {', '.join(TABLES)}")
    if args.table not in TABLES:
        raise UserError(f"unknown table '{args.table}'{did_you_mean(args.table, TABLES)}")
    return _run_table(args)


def _run_table(args: argparse.Namespace) -> int:
    from importlib import import_module

    from fedarena.cli.output.reproduce import progress_line, show
    from fedarena.cli.output.reproduce_markdown import page
    from fedarena.core.files import prepare_folder, write_atomically
    from fedarena.records.environment import environment
    from fedarena.reproduce.page import parts
    from fedarena.reproduce.page.measuring import measure
    from fedarena.runs.executors import cores

    module = import_module(TABLES[args.table])
    seeds, place, out = read_seeds(args.seeds or "0"), where(args), Path(args.out)
    if args.device != "cpu" and hasattr(module, "CPU_ALONE"):
        raise UserError(f"option 'device' is {args.device}, allowed for {args.table}: cpu: {module.CPU_ALONE}")
    jobs = cores() if args.jobs is None else read_integer("jobs", args.jobs, 1)
    pieces = [piece for piece in module.PIECES if piece.startswith(args.only or "")]
    if not pieces:
        raise UserError(f"option 'only' is '{args.only}', allowed: how one of these begins: {'; '.join(module.PIECES)}")
    prepare_folder(out)
    if args.markdown:
        if Path(args.markdown).is_dir():
            raise UserError(f"option 'markdown' is {args.markdown}, which is a folder: name a file")
        prepare_folder(Path(args.markdown).parent, "markdown")
    # A file of its own for each choice, so that one part does not overwrite another.
    suffix = f"-{re.sub(r'[^A-Za-z0-9.]+', '-', args.only).strip('-')}" if args.only else ""
    path = out / f"{args.table.replace('/', '-')}{suffix}.json"
    result = {"table": args.table, "setting": module.SETTING, "rows": [], "parts": [], "environment": environment()}
    wanted = [parts.Asked(args.table, piece, seed) for piece in pieces for seed in seeds]
    done = {} if args.fresh else _there(out, wanted)
    todo, kept = [one for one in wanted if one not in done], len(done)
    failed: dict[Asked, str] = {}
    _write(path, result, wanted, done)
    with progress_line(args.quiet) as report:
        for i, part in measure(todo, place, jobs, report):
            if isinstance(part, str):
                failed[todo[i]] = part
                continue
            assert isinstance(part, parts.Part)  # without a limit of time
            parts.save(out, part)  # nothing done is lost
            done[part.asked] = part
            _write(path, result, wanted, done)
    if failed and not done:
        raise UserError(_told(failed, len(wanted)))
    compact = getattr(module, "compact", None)
    if args.markdown:
        write_atomically(Path(args.markdown), page(result, module.MEASURED, compact, seeds, args.only))
    if args.json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, module.MEASURED, path, compact)
        if kept:
            shared = sum(bool(part.run_of) for part in done.values())
            other = f" ({plural(shared, 'run')} of other tables)" if shared else ""
            print(f"{kept} of {len(wanted)} parts were there already{other}; --fresh measures them again")
    if hasattr(module, "draw"):
        picture = path.with_suffix(".png")
        module.draw(result["rows"], picture)
        if not args.json:
            print(f"Drawn to {picture}")
    if failed:
        print(f"bench: {_told(failed, len(wanted))}", file=sys.stderr)
        return 1
    return 0


def _told(failed: Mapping[Asked, str], wanted: int) -> str:
    """Which parts have no result, by the reason."""
    reasons: dict[str, list[str]] = {}
    for one, reason in failed.items():
        reasons.setdefault(reason, []).append(one.piece)
    lines = [f"{reason} ({plural(len(names), 'part')}, such as '{names[0]}')" for reason, names in reasons.items()]
    return f"{len(failed)} of {plural(wanted, 'part')} could not be measured: " + "; ".join(lines)


def _there(out: Path, wanted: Sequence[Asked]) -> dict[Asked, Part]:
    """Those of the wanted parts of a table that are there and hold, or whose run is there for another table."""
    from fedarena.reproduce.page.gather import holding
    from fedarena.reproduce.page.shared import elsewhere

    found = {part.asked: part for part in holding(out, wanted[0].table)[0] if part.asked in wanted}
    return found | elsewhere([one for one in wanted if one not in found], lambda table: holding(out, table)[0])


def _write(path: Path, result: dict[str, Any], wanted: Sequence[Asked], done: dict[Asked, Part]) -> None:
    """Put what is done into the result, in the order in which it was asked for, and write it."""
    from fedarena.core.files import write_atomically

    own = [done[one] for one in wanted if one in done]
    result["rows"] = [{"seed": part.asked.seed, **row} for part in own for row in part.rows]
    result["parts"] = [
        {
            "piece": part.asked.piece,
            "seed": part.asked.seed,
            "cpu_seconds": part.cpu_seconds,
            "device": part.device,
            "fedarena": part.environment["fedarena"],
            "commit": part.environment.get("commit"),
            **({"run_of": part.run_of} if part.run_of else {}),
        }
        for part in own
    ]
    write_atomically(path, json.dumps(result, indent=2, allow_nan=False) + "\n")
