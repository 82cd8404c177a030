"""A table of `bench reproduce` as a page of markdown, with the command that measures it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fedarena.cli.output.reproduce import laid_out
from fedarena.core.text.markdown import code, escape, items, table
from fedarena.core.text.numbers import plural
from fedarena.reproduce.table import Compact


def page(
    result: Mapping[str, Any],
    measured: Sequence[str],
    compact: Compact | None,
    seeds: Sequence[int],
    only: str | None,
) -> str:
    """The table as it is printed, its setting, its notes, and what measured it.

    Args:
        result: the output of `bench reproduce --json`. measured, compact: the attributes of the table.
        only: the part of the table, None for all of it.
    """
    heads, rows, notes = laid_out(result, measured, compact)
    words = ["bench", "reproduce", result["table"], *(["--only", only] if only else [])]
    if list(seeds) != [0]:
        words += ["--seeds", ",".join(map(str, seeds))]
    text = [
        f"# {result['table']}",
        escape(result["setting"]) + ".",
        code([shlex.join(words)]),
        table([escape(head) for head in heads], [[escape(value) for value in row] for row in rows]),
        *([items([escape(note) for note in notes])] if notes else []),
        escape(_source_text(result)),
    ]
    return "\n\n".join(text) + "\n"


def _source_text(result: Mapping[str, Any]) -> str:
    """The versions that measured the parts, which may be several, and how long it took."""
    parts, environment = result["parts"], result["environment"]
    versions = sorted({f"{p['fedarena']} ({p['commit']})" if p["commit"] else p["fedarena"] for p in parts})
    spent = sum(p["cpu_seconds"] for p in parts)
    devices = sorted({p["device"] for p in parts} - {"cpu"})
    return (
        f"{plural(len(parts), 'part')}, {spent:.0f} s of CPU time; FedArena {', '.join(versions)}, torch "
        f"{environment['libraries']['torch']}, {', '.join([environment['machine'], *devices])}."
    )
