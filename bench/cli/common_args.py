"""Options that several commands have."""

from __future__ import annotations

import argparse


def add_data_dir(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--data-dir", metavar="FOLDER", help="data files (default: $FEDARENA_DATA, then the cache)")


def add_device(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where to compute (default: cpu)")


def add_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def add_quiet(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress")
