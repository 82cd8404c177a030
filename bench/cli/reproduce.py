"""`bench reproduce`: a paper's table beside what is measured here."""

from __future__ import annotations

import argparse
import json

from fedarena.cards import did_you_mean
from fedarena.cli.problem_args import read_seeds
from fedarena.errors import UserError
from fedarena.reproduce import TABLES


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
    from pathlib import Path

    from fedarena.cli.problem_args import data_dir
    from fedarena.cli.reproduce_output import progress_line, show
    from fedarena.engine import one_thread
    from fedarena.records import environment, prepare_folder, write_atomically

    module = import_module(TABLES[args.table])
    seeds, folder, out = read_seeds(args.seeds), data_dir(args), Path(args.out)
    prepare_folder(out)
    one_thread()
    rows = []
    with progress_line(args.quiet) as report:
        for i, seed in enumerate(seeds):
            rows += [
                {"seed": seed, **row}
                for row in module.rows(folder, seed, lambda share, text, i=i: report((i + share) / len(seeds), text))
            ]
    result = {"table": args.table, "setting": module.SETTING, "rows": rows, "environment": environment()}
    path = out / f"{args.table.replace('/', '-')}.json"
    write_atomically(path, json.dumps(result, indent=2, allow_nan=False) + "\n")
    if args.json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, path)
    return 0
