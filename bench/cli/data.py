"""`bench data`: which data sets are present, `fetch` to download one, `verify` to read them and compare checksums."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.text.printable import one_line
from fedarena.datasets import load

if TYPE_CHECKING:
    from fedarena.datasets.survey import Row

Subparsers = Any  # argparse gives its own type no public name


def add_parser(subparsers: Subparsers) -> None:
    """Add `data` with `fetch` and `verify`; each sets `run`, a function of the parsed arguments."""
    top = subparsers.add_parser("data", help="show, fetch and verify data sets")
    _common(top, data_dir=None, json=False)
    top.set_defaults(run=run)
    actions = top.add_subparsers(dest="action", metavar="ACTION")
    fetch = actions.add_parser("fetch", help="download a data set into --data-dir or the cache folder")
    fetch.add_argument("archive", metavar="NAME", help="a data set of `bench data`")
    fetch.add_argument("--timeout", metavar="S", default="600", help="seconds for the whole download (default: 600)")
    verify = actions.add_parser("verify", help="read data sets and recompute their checksums; exit 1 on damage")
    verify.add_argument("dataset", nargs="?", metavar="NAME", help="a data set (default: all that are present)")
    for action in (fetch, verify):  # an option that is not given after the action keeps its value from before it
        _common(action, data_dir=argparse.SUPPRESS, json=argparse.SUPPRESS)


def _common(parser: argparse.ArgumentParser, data_dir: Any, json: Any) -> None:
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default=data_dir,
        help="folder with .npz files, searched first (then FEDARENA_DATA, then the cache folder)",
    )
    parser.add_argument("--json", action="store_true", default=json, help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Show, fetch or verify; 0 done, 1 damage was found. Raises UserError."""
    data_dir = Path(args.data_dir) if args.data_dir else None
    if args.action == "fetch":
        return run_fetch(args.archive, data_dir, args.timeout, args.json)
    if args.action == "verify":
        return run_verify(args.dataset, data_dir, args.json)
    return run_show(data_dir, args.json)


def run_show(data_dir: Path | None, as_json: bool) -> int:
    """Print one row a data set."""
    from fedarena.datasets.survey import survey

    rows = [survey(name, data_dir) for name in registry.registries()["dataset"].names()]
    if as_json:
        return print_json({"datasets": [row.as_dict() for row in rows]})
    _print_rows(rows)
    return 0


def run_verify(name: str | None, data_dir: Path | None, as_json: bool) -> int:
    """Read one data set or all that are present. Raises UserError if the data set that is named is absent."""
    from fedarena.datasets.survey import verify

    if name is not None:
        registry.find("dataset", name)
    names = [name] if name else registry.registries()["dataset"].names()
    rows = [verify(n, data_dir) for n in names]
    if name is not None and rows[0].state == "absent":
        load(name, data_dir)  # the message says which file to put where
    code = 0 if all(row.healthy for row in rows) else 1
    if as_json:
        print_json({"datasets": [row.as_dict() for row in rows]})
    else:
        _print_rows(rows)
    return code


def run_fetch(name: str, data_dir: Path | None, timeout: str, as_json: bool) -> int:
    """Download one data set. Raises UserError."""
    from fedarena.datasets.archive import Archive
    from fedarena.datasets.digit_domains import Joined
    from fedarena.datasets.fetch import fetch
    from fedarena.datasets.folders import cache_folder

    source = registry.find("dataset", name).load()
    seconds = _seconds(timeout)
    if isinstance(source, Joined):
        needed = [part for part in source.parts if isinstance(registry.find("dataset", part).load(), Archive)]
        raise UserError(f"data set '{name}' has no file of its own: fetch {' and '.join(needed)} instead")
    if not isinstance(source, Archive):
        raise UserError(f"data set '{name}' needs no file: there is nothing to fetch")
    folder = data_dir.expanduser() if data_dir else cache_folder()
    done = fetch(source, folder, seconds)
    used = source.find(data_dir)
    shadow = str(used.path) if used and used.path != done.path else None
    if as_json:
        facts = {"name": name, "path": str(done.path), "downloaded": done.downloaded, "subset": done.subset}
        return print_json(facts | {"shadowed_by": shadow})
    print(f"{name}: {'downloaded to' if done.downloaded else 'intact already, in'} {done.path}")
    if done.subset:
        print(f"  it is a subset ({done.subset}); remove it and fetch again for the complete data set")
    if shadow:
        print(f"  note: {shadow} comes first on the search path and is what loading reads")
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise UserError(f"option '--timeout' is '{text}', allowed: seconds above 0, at most 86400")
    return seconds


def _print_rows(rows: Sequence[Row]) -> None:
    from fedarena.cli.output.rows import show_rows
    from fedarena.cli.output.terminal import Terminal, stdout_width
    from fedarena.datasets.cards.spec import show_shape

    titles = ("data set", "samples", "classes", "shape", "checksum", "subset", "licence", "found")
    lines = []
    for row in rows:
        samples = f"{row.train} + {row.test}" if row.train is not None else "-"
        place = row.path or row.state
        cells = (
            row.name,
            samples,
            "-" if row.classes is None else str(row.classes or "numbers"),
            show_shape(row.shape) if row.shape else "-",
            row.checksum or "-",
            row.subset or "-",
            row.licence or "-",
            f"{place} ({row.state})" if row.problem and row.path else place,
        )
        lines.append(cells)
    # A pipe has no width to fit, so rows are not broken there.
    show_rows(Terminal(file=sys.stdout, width=stdout_width(240)), titles, lines)
    for row in rows:
        if row.problem:
            print(one_line(f"{row.name}: {row.problem}"))
