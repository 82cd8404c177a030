"""A table of `bench reproduce` as a page of markdown, with the command that measures it anew."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fedarena.cli.output.reproduce import Compact, laid_out
from fedarena.core.text.markdown import code, escape, items, table
from fedarena.core.text.plural import plural


def page(
    result: Mapping[str, Any],
    measured: Sequence[str],
    compact: Compact | None,
    seeds: Sequence[int],
    only: str | None,
) -> str:
    """The table as it is printed, its setting, its notes, and what measured it.

    Args:
        result: as `bench reproduce --json` has it. measured, compact: of the table's module.
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
        escape(_made_by(result)),
    ]
    return "\n\n".join(text) + "\n"


def _made_by(result: Mapping[str, Any]) -> str:
    """Which versions measured the parts, which may have been on several days, and how long it took."""
    made = {f"{p['fedarena']} ({p['commit']})" if p["commit"] else p["fedarena"] for p in result["parts"]}
    environment, spent = result["environment"], sum(p["cpu_seconds"] for p in result["parts"])
    devices = sorted({p["device"] for p in result["parts"]} - {"cpu"})
    return (
        f"{plural(len(result['parts']), 'part')}, {spent:.0f} s of CPU time; FedArena {', '.join(sorted(made))}, torch "
        f"{environment['libraries']['torch']}, {', '.join([environment['machine'], *devices])}."
    )
