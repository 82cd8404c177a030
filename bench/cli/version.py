"""`bench --version`: this package, its commit, and what its numbers depend on."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from fedarena import __version__


class ShowVersion(argparse.Action):
    """Prints the version and ends the process. It asks git and packages' metadata, so only when it is wanted."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"nargs": 0, "help": "show the version, the commit, Python and torch, and exit", **given})

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(told())
        parser.exit()


def told() -> str:
    """ "fedarena 0.1.0, commit …, python 3.11.7, torch 2.13.0"."""
    from fedarena.core.source_commit import source_commit

    commit = source_commit()
    parts = [f"fedarena {__version__}", *([f"commit {commit}"] if commit else [])]
    parts.append(f"python {platform.python_version()}")
    try:
        parts.append(f"torch {version('torch')}")
    except PackageNotFoundError:
        parts.append("torch is not installed")
    return ", ".join(parts)
