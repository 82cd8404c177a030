"""`bench reproduce --all`: the numbers of all papers on one page, and what is missing measured where that is asked."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.problem_args import read_seeds, where
from fedarena.core.errors import UserError
from fedarena.problem.defaults import read_integer

if TYPE_CHECKING:
    from fedarena.reproduce.page.gather import Gathered, Line
    from fedarena.reproduce.page.parts import Asked
    from fedarena.reproduce.place import Where


def run_all(args: argparse.Namespace) -> int:
    """Carry out the command; 1 where something that was measured went wrong."""
    from fedarena.cli.output.reproduce import show_all
    from fedarena.core.files import prepare_folder
    from fedarena.reproduce.page.gather import gather
    from fedarena.reproduce.page.shared import once
    from fedarena.runs.executors import cores

    if args.table is not None:
        raise UserError(f"give a table ('{args.table}') or --all, not both; `--all --only {args.table}` gathers one")
    for name in ("within", "fresh", "jobs", "data_dir"):
        if getattr(args, name) and not args.measure:
            raise UserError(f"option '{name.replace('_', '-')}' belongs to --all --measure, and nothing is measured")
    if args.device != "cpu" and not args.measure:
        raise UserError("option 'device' belongs to --all --measure, and nothing is measured")
    minutes = read_minutes(args.within)
    seeds = None if args.seeds is None else read_seeds(args.seeds)
    jobs = cores() if args.jobs is None else read_integer("jobs", args.jobs, 1)
    place, out, only = where(args), Path(args.out), args.only or ""
    report = Path(args.report or "reports/reproduction")
    found = gather(out, report, seeds, only)
    if not found.lines:
        raise UserError(f"option 'only' is '{only}', with which no part of a table with a paper's number begins")
    page = publish(found, report, only)
    failed: dict[Asked, str] = {}
    if args.measure:
        prepare_folder(out)
        todo = once(found.missing)
        if args.fresh:
            todo = list(dict.fromkeys([*(part.asked for part in found.parts), *found.missing]))
        try:
            failed = measure_missing(found, todo, out, place, jobs, minutes, args.quiet)
        finally:  # interrupted, too: what was done is on the page
            found = gather(out, report, seeds, only, failed)
            page = publish(found, report, only)
    if args.json:
        print(json.dumps(as_json(found), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show_all(found, failed, page)
    return 1 if failed else 0


def read_minutes(text: str | None) -> float | None:
    """A positive number of minutes. Raises UserError."""
    if text is None:
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not (minutes > 0 and math.isfinite(minutes)):
        raise UserError(f"option 'within' is '{text}', allowed: minutes, more than 0")
    return minutes


def measure_missing(
    found: Gathered,
    todo: Sequence[Asked],
    out: Path,
    where: Where,
    jobs: int,
    minutes: float | None,
    quiet: bool,
) -> dict[Asked, str]:
    """Measure parts, cheapest first, each kept as soon as it is done; those that went wrong, with the reason.

    Parts that are expected to take longer than all of the time are left alone: they would only be given up.
    """
    from fedarena.cli.output.reproduce import progress_line
    from fedarena.reproduce.page import parts
    from fedarena.reproduce.page.measuring import measure
    from fedarena.reproduce.page.order import cheapest_first, expected

    until = None if minutes is None else time.time() + 60 * minutes
    order = cheapest_first(todo, found.times)
    if minutes is not None:
        order = [one for one in order if (expected(one, found.times) or 0.0) <= 60 * minutes]
    failed: dict[Asked, str] = {}
    with progress_line(quiet) as report:
        for i, part in measure(order, where, jobs, report, until=until):
            if isinstance(part, str):
                failed[order[i]] = part
            elif isinstance(part, float):
                parts.save_guess(out, order[i], part)
            elif part is not None:
                try:
                    parts.save(out, part)
                except ValueError as error:  # NaN, which is no result
                    failed[order[i]] = str(error)
    return failed


def publish(found: Gathered, folder: Path, only: str) -> Path:
    """Write the page, its picture and the parts that they are made of; the page's path.

    Raises:
        UserError: a folder that cannot be written.
    """
    from fedarena.core.files import write_atomically
    from fedarena.reproduce.page import parts
    from fedarena.reproduce.page.page import page
    from fedarena.reproduce.page.picture import alt, draw, drawn

    picture = None
    if drawn(found.all):
        draw(found.all, folder / "numbers.png")
        picture = "numbers.png", alt(found.all)
    path = folder / "README.md"
    write_atomically(path, page(found, picture, only))
    parts.publish(folder, found.parts)
    return path


def as_json(found: Gathered) -> dict[str, Any]:
    """What the page says, for machines."""
    from fedarena.reproduce.page.order import expected

    missing = [
        {"table": one.table, "piece": one.piece, "seed": one.seed, "expected_cpu_seconds": expected(one, found.times)}
        for one in found.missing
    ]
    return {
        "numbers": [_line(line) for line in found.all],
        "missing": missing,
        "without": list(found.without),
        "complaints": list(found.complaints),
    }


def _line(line: Line) -> dict[str, Any]:
    from fedarena.core.text.mean import Mean

    published, measured = line.published, line.found
    return {
        "table": line.table,
        "setting": published.setting,
        "column": published.column,
        "paper": published.paper,
        "source": published.source,
        "derived": published.derived,
        "ours": measured.value if isinstance(measured, Mean) else measured,
        "half_interval": measured.half if isinstance(measured, Mean) else None,
        "difference": line.difference,
        "verdict": line.verdict,
        "apart": published.apart,
        "seeds": list(line.seeds),
        "cpu_seconds": line.cpu_seconds,
        "reason": line.reason,
        "command": line.command,
    }
