"""`bench reproduce`: a paper's table beside what is measured here."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fedarena.cards import did_you_mean
from fedarena.cli.problem_args import data_dir, read_seeds
from fedarena.errors import UserError
from fedarena.reproduce import TABLES
from fedarena.usual import read_integer


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    known = ", ".join(TABLES)
    parser = commands.add_parser(
        "reproduce",
        help="a paper's table beside what is measured here",
        description=f"Measure a table or figure of a paper anew. Known: {known}.",
    )
    parser.add_argument("table", help=f"one of {known}")
    parser.add_argument("--seeds", default="0", metavar="N,...", help="seeds (default: 0)")
    parser.add_argument("--only", metavar="TEXT", help="only the parts whose name begins with TEXT (such as usps)")
    parser.add_argument("--jobs", metavar="N", help="worker processes (default: one a core; no effect on results)")
    parser.add_argument("--data-dir", metavar="FOLDER", help="data files (default: $FEDARENA_DATA, then the cache)")
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="the result goes here too (default: runs)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    if args.table not in TABLES:
        raise UserError(f"unknown table '{args.table}'{did_you_mean(args.table, TABLES)}")
    from importlib import import_module

    from fedarena.cli.reproduce_output import progress_line, show
    from fedarena.executors import cores
    from fedarena.records import environment, prepare_folder, write_atomically

    module = import_module(TABLES[args.table])
    seeds, folder, out = read_seeds(args.seeds), data_dir(args), Path(args.out)
    jobs = cores() if args.jobs is None else read_integer("jobs", args.jobs, 1)
    pieces = [piece for piece in module.PIECES if piece.startswith(args.only or "")]
    if not pieces:
        raise UserError(f"option 'only' is '{args.only}', allowed: how one of these begins: {'; '.join(module.PIECES)}")
    prepare_folder(out)
    # A file of its own for each choice, so that one part does not overwrite another.
    suffix = f"-{re.sub(r'[^A-Za-z0-9.]+', '-', args.only).strip('-')}" if args.only else ""
    path = out / f"{args.table.replace('/', '-')}{suffix}.json"
    result = {"table": args.table, "setting": module.SETTING, "rows": [], "environment": environment()}
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    with progress_line(args.quiet) as report:
        for place, rows in measure(module, pieces, seeds, folder, jobs, report):
            found[place] = [{"seed": seeds[place[1]], **row} for row in rows]
            result["rows"] = [row for at in sorted(found) for row in found[at]]
            write_atomically(path, json.dumps(result, indent=2, allow_nan=False) + "\n")  # nothing done is lost
    if args.json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, module.MEASURED, path, getattr(module, "compact", None))
    if hasattr(module, "draw"):
        picture = path.with_suffix(".png")
        module.draw(result["rows"], picture)
        if not args.json:
            print(f"Drawn to {picture}")
    return 0


def measure(
    module: Any,
    pieces: Sequence[str],
    seeds: Sequence[int],
    folder: Path | None,
    jobs: int,
    report: Callable[[float, str], None],
) -> Iterator[tuple[tuple[int, int], list[dict[str, Any]]]]:
    """((piece, seed), its rows) as they are done; in worker processes when there is more than one thing to do."""
    places = [(i, k) for i in range(len(pieces)) for k in range(len(seeds))]
    if jobs == 1 or len(places) == 1:
        for done, (i, k) in enumerate(places):

            def tell(share: float, text: str, done: int = done) -> None:
                report((done + share) / len(places), text)

            yield _measure(module.__name__, (i, k), pieces[i], seeds[k], folder, tell)
        return
    import joblib

    calls = [joblib.delayed(_measure)(module.__name__, (i, k), pieces[i], seeds[k], folder) for i, k in places]
    parallel = joblib.Parallel(n_jobs=min(jobs, len(places)), backend="loky", return_as="generator_unordered")
    report(0.0, f"{len(places)} parts")
    for done, one in enumerate(parallel(calls), 1):
        report(done / len(places), pieces[one[0][0]])
        yield one


def _measure(
    module: str,
    place: tuple[int, int],
    piece: str,
    seed: int,
    folder: Path | None,
    tell: Callable[[float, str], None] = lambda share, text: None,
) -> tuple[tuple[int, int], list[dict[str, Any]]]:
    from importlib import import_module

    from fedarena.executors import one_thread

    one_thread()
    return place, import_module(module).rows(piece, folder, seed, tell)
