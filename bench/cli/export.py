"""`bench export`: finished records for other tools."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

TARGETS = {"csv": "csv_file", "parquet": "parquet_file", "mlflow": "mlflow_runs", "wandb": "wandb_runs"}
"""Target → its module in `fedarena.export`."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "export",
        help="hand finished records to other tools",
        description="Write records as a table, one row for each, or log them to a tracker of experiments, one run for "
        "each. Records that a tracker has already are not logged twice.",
        epilog="csv needs nothing more; parquet, mlflow and wandb are extras: pip install 'fedarena[mlflow]'",
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUNS", help="folders of `bench run` or `bench suite run`, or names of suites"
    )
    parser.add_argument("--to", required=True, choices=tuple(TARGETS), help="what to write")
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="csv, parquet: the file (csv without it is printed); mlflow: a folder, or a tracking URI (default: as "
        "MLflow is set up); wandb: the folder that gets wandb/ (default: this one)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command. Raises UserError."""
    from fedarena.core.text.printable import printable
    from fedarena.export.facts import read

    items, notes = read(args.runs)
    for note in notes:
        print(f"bench: {printable(note)}", file=sys.stderr)
    done: str = import_module(f"fedarena.export.{TARGETS[args.to]}").export(items, args.out)
    if done:
        print(printable(done))
    return 0
