"""`bench reproduce --all` gathers the numbers of all papers on one page, and can measure what is missing."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import read_jobs, read_machine, read_seeds
from fedarena.core.errors import UserError
from fedarena.reproduce.machine import Machine

if TYPE_CHECKING:
    from fedarena.reproduce.page.gather import Comparison, Gathered
    from fedarena.reproduce.page.measuring import Outcome
    from fedarena.reproduce.page.parts import PartKey


def run_all(args: argparse.Namespace) -> int:
    """Carry out the command; the exit code is 1 if the measurement of a part failed."""
    from fedarena.cli.output.reproduce import show_all
    from fedarena.core.files import prepare_folder
    from fedarena.reproduce.page.gather import gather

    order = _read_order(args)
    gathered = gather(order.out, order.report, order.seeds, order.only)
    if not gathered.comparisons:
        raise UserError(f"option 'only' is '{order.only}', with which no part of a table with a paper's number begins")
    page = publish(gathered, order.report, order.only)
    failed: dict[PartKey, str] = {}
    if args.measure:
        prepare_folder(order.out)
        try:
            failed = measure_missing(order, gathered, _wanted(gathered, args.fresh))
        finally:  # also after an interrupt: the page has what was done
            gathered = gather(order.out, order.report, order.seeds, order.only, failed)
            page = publish(gathered, order.report, order.only)
    if args.json:
        print_json(as_json(gathered))
    else:
        show_all(gathered, failed, page)
    return 1 if failed else 0


@dataclass(frozen=True)
class Order:
    """What is gathered, and how missing parts are measured.

    Attributes:
        out: the folder with the parts.
        report: the folder with the page.
        seeds, only: what is gathered; see `fedarena.reproduce.page.gather.gather`.
        minutes: how long it may take; None: there is no limit.
    """

    out: Path
    report: Path
    seeds: Sequence[int] | None
    only: str
    machine: Machine
    jobs: int
    minutes: float | None
    quiet: bool


def _read_order(args: argparse.Namespace) -> Order:
    """Read the options. Raises UserError."""
    from fedarena.runs.executors import usual_jobs

    if args.table is not None:
        raise UserError(f"give a table ('{args.table}') or --all, not both; `--all --only {args.table}` gathers one")
    for name in ("within", "fresh", "jobs", "data_dir"):
        if vars(args)[name] and not args.measure:
            raise UserError(f"option '{name.replace('_', '-')}' belongs to --all --measure, and nothing is measured")
    if args.device != "cpu" and not args.measure:
        raise UserError("option 'device' belongs to --all --measure, and nothing is measured")
    minutes = read_minutes(args.within)
    seeds = None if args.seeds is None else read_seeds(args.seeds)
    jobs = usual_jobs(args.device) if args.jobs is None else read_jobs(args.jobs)
    return Order(
        out=Path(args.out),
        report=Path(args.report or "reports/reproduction"),
        seeds=seeds,
        only=args.only or "",
        machine=read_machine(args),
        jobs=jobs,
        minutes=minutes,
        quiet=args.quiet,
    )


def _wanted(gathered: Gathered, fresh: bool) -> list[PartKey]:
    """The parts to measure: the missing ones, and with `fresh` also those that are there."""
    from fedarena.reproduce.page.shared import once

    if not fresh:
        return once(gathered.missing)
    return list(dict.fromkeys([*(part.key for part in gathered.parts), *gathered.missing]))


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


def measure_missing(order: Order, gathered: Gathered, wanted: Sequence[PartKey]) -> dict[PartKey, str]:
    """Measure parts, the cheapest first, save each one as soon as it is done, and return the reasons of failures.

    Parts that are expected to exceed the whole time are skipped, since they would only be given up.
    """
    from fedarena.cli.output.reproduce import progress_line
    from fedarena.reproduce.page.measuring import measure
    from fedarena.reproduce.page.order import cheapest_first, expected

    keys, until = cheapest_first(wanted, gathered.times), None
    if order.minutes is not None:
        seconds = 60 * order.minutes
        until = time.time() + seconds
        keys = [key for key in keys if (expected(key, gathered.times) or 0.0) <= seconds]
    failed: dict[PartKey, str] = {}
    with progress_line(order.quiet) as progress:
        for i, outcome in measure(keys, order.machine, order.jobs, progress, until=until):
            reason = _keep(order.out, keys[i], outcome)
            if reason is not None:
                failed[keys[i]] = reason
    return failed


def _keep(out: Path, key: PartKey, outcome: Outcome) -> str | None:
    """Save the outcome of a part. Returns the reason of its failure, or None."""
    from fedarena.reproduce.page.parts import save, save_guess

    if isinstance(outcome, str):
        return outcome
    if isinstance(outcome, float):
        save_guess(out, key, outcome)
    elif outcome is not None:
        try:
            save(out, outcome)
        except ValueError as error:  # the rows hold NaN, which is no result
            return str(error)
    return None


def publish(gathered: Gathered, folder: Path, only: str) -> Path:
    """Write the pages, their picture and the parts that all are based on; return the path of the front page.

    Raises:
        UserError: a folder that cannot be written.
    """
    from fedarena.core.files import write_atomically
    from fedarena.reproduce.page import parts
    from fedarena.reproduce.page.layout import FRONT
    from fedarena.reproduce.page.page import pages
    from fedarena.reproduce.page.picture import alt, draw, drawn

    picture = None
    if drawn(gathered.all):
        draw(gathered.all, folder / "numbers.png")
        picture = "numbers.png", alt(gathered.all)
    for file, text in pages(gathered, picture, only).items():
        write_atomically(folder / file, text)
    parts.publish(folder, gathered.parts)
    return folder / FRONT


def as_json(gathered: Gathered) -> dict[str, Any]:
    """The content of the page as plain data."""
    from fedarena.reproduce.page.order import expected

    missing = [
        {
            "table": one.table,
            "piece": one.piece,
            "seed": one.seed,
            "expected_cpu_seconds": expected(one, gathered.times),
        }
        for one in gathered.missing
    ]
    return {
        "numbers": [_as_json(one) for one in gathered.all],
        "missing": missing,
        "without": list(gathered.without),
        "complaints": list(gathered.complaints),
    }


def _as_json(one: Comparison) -> dict[str, Any]:
    from fedarena.core.text.numbers import Mean

    published, ours = one.published, one.ours
    return {
        "table": one.table,
        "setting": published.setting,
        "column": published.column,
        "paper": published.paper,
        "source": published.source,
        "derived": published.derived,
        "spread": published.spread and asdict(published.spread),
        "ours": ours.value if isinstance(ours, Mean) else ours,
        "half_interval": ours.half if isinstance(ours, Mean) else None,
        "difference": one.difference,
        "standard_error": one.standard_error,
        "verdict": one.verdict,
        "cause": one.cause,
        "shown_by": one.shown_by,
        "apart": published.apart,
        "seeds": list(one.seeds),
        "cpu_seconds": one.cpu_seconds,
        "reason": one.reason,
        "command": one.command,
    }
