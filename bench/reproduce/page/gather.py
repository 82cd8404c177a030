"""All published numbers of all tables, each with what was measured of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fedarena.core.text.mean import Mean
from fedarena.reproduce import TABLES
from fedarena.reproduce.page.parts import Asked, Part, guesses, load, published
from fedarena.reproduce.page.shared import elsewhere
from fedarena.reproduce.page.verdict import Verdict, difference, ours, verdict
from fedarena.reproduce.published import Published


@dataclass(frozen=True)
class Line:
    """One published number.

    Attributes:
        found: ours, None where there is none.
        verdict: see `fedarena.reproduce.page.verdict`.
        seeds: that ours was measured with.
        cpu_seconds: that its part took, all seeds together; the part may hold other lines, too.
        reason: why a part gave no number, of parts that failed.
    """

    table: str
    published: Published
    found: Mean | str | None
    verdict: Verdict
    seeds: tuple[int, ...]
    cpu_seconds: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return difference(self.published, self.found)

    @property
    def command(self) -> str:
        """Measures the line, and whatever else of the table begins with its name."""
        only = "" if self.published.piece == "all" else f" --only {quoted(self.published.piece)}"
        seeds = "" if self.seeds in ((), (0,)) else f" --seeds {','.join(map(str, self.seeds))}"
        return f"bench reproduce {self.table}{only}{seeds}"


@dataclass(frozen=True)
class Gathered:
    """What there is.

    Attributes:
        lines: by table. settings: of the tables that have lines. without: tables that have none.
        missing: parts that a line needs and that are not there, in the order of the tables.
        parts: those that are there and hold, of tables with lines; in place of what is made of another table's part,
            that part.
        times: CPU seconds of these, and of parts that were given up how many they are expected to take.
        complaints: a line for every file that could not be used.
    """

    lines: Mapping[str, Sequence[Line]]
    settings: Mapping[str, str]
    without: Sequence[str]
    missing: Sequence[Asked]
    parts: Sequence[Part]
    times: Mapping[Asked, float]
    complaints: Sequence[str]

    @property
    def all(self) -> list[Line]:
        """Lines of all tables."""
        return [line for lines in self.lines.values() for line in lines]


def gather(
    out: Path,
    report: Path,
    seeds: Sequence[int] | None = None,
    only: str = "",
    failed: Mapping[Asked, str] | None = None,
) -> Gathered:
    """Read what is in the folder, and of what is not there what is published beside the page.

    Args:
        out: with the parts. report: with the page.
        seeds: that count; None: all that are there, and seed 0 is missing where none is.
        only: how the names "table: piece" begin.
        failed: parts that were tried and went wrong, with the reason.
    """
    lines: dict[str, list[Line]] = {}
    settings: dict[str, str] = {}
    times: dict[Asked, float] = {}
    before, complaints = published(report)
    without, missing, parts = [], [], []
    there = {table: holding(out, table, before) for table in TABLES}
    every = {part.asked.seed for found, _ in there.values() for part in found}
    for table, module in TABLES.items():
        # By its attributes, since a table is a module.
        page: Any = import_module(module)
        numbers = [p for p in getattr(page, "PUBLISHED", ()) if f"{table}: {p.piece}".startswith(only)]
        if not numbers:
            without += [] if hasattr(page, "PUBLISHED") or not table.startswith(only) else [table]
            continue
        found, complained = there[table]
        complaints += complained
        by_piece: dict[str, list[Part]] = {p.piece: [] for p in numbers}
        for part in found:
            if part.asked.piece in by_piece and (seeds is None or part.asked.seed in seeds):
                by_piece[part.asked.piece].append(part)
        parts += [part for own in by_piece.values() for part in own]
        absent = [
            Asked(table, piece, seed)
            for piece, own in by_piece.items()
            for seed in (every if seeds is None else seeds)
            if seed not in {p.asked.seed for p in own}
        ]
        lent = elsewhere(absent, lambda other: there[other][0])
        for asked, part in lent.items():
            by_piece[asked.piece].append(part)
        lenders = {part.run_of for part in lent.values()}
        parts += [part for others, _ in there.values() for part in others if part.asked.name in lenders]
        times |= guesses(out, table) | {part.asked: part.cpu_seconds for part in found}
        settings[table] = page.SETTING
        lines[table] = [_line(table, p, _in_order(by_piece[p.piece]), failed or {}) for p in numbers]
        for piece, own in by_piece.items():
            done = {p.asked.seed for p in own}
            wanted = seeds if seeds is not None else ((0,) if not done else ())
            missing += [Asked(table, piece, seed) for seed in wanted if seed not in done]
    once = list({part.asked: part for part in parts}.values())  # one may be lent to several tables
    return Gathered(lines, settings, without, missing, once, times, complaints)


def holding(out: Path, table: str, before: Sequence[Part] = ()) -> tuple[list[Part], list[str]]:
    """A table's parts that hold, those in the folder before those published, and a line for each that is of no use."""
    setting = import_module(TABLES[table]).SETTING
    own, complaints = load(out, table)
    held = {part.asked: part for part in own if part.holds(setting)}
    rest = [part for part in (*own, *before) if part.asked.table == table and part.asked not in held]
    held |= {part.asked: part for part in rest if part.holds(setting)}
    told = {
        part.asked: f"{part.asked.name} was measured by version {part.environment['fedarena']} or in another "
        "setting; it counts as not measured"
        for part in rest
        if part.asked not in held
    }
    return _in_order(held.values()), [*complaints, *told.values()]


def _in_order(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.asked.seed)


def _line(table: str, published: Published, parts: Sequence[Part], failed: Mapping[Asked, str]) -> Line:
    reasons = [why for asked, why in failed.items() if (asked.table, asked.piece) == (table, published.piece)]
    if not parts:
        return Line(table, published, None, "not measured", (), None, reasons[0] if reasons else "")
    own = [[row for row in part.rows if published.is_of(row)] for part in parts]
    rows = [row for rows in own for row in rows]
    # A mean over what is not one row a seed would be of something else.
    found = ours([row.get(published.column) for row in rows]) if all(len(rows) == 1 for rows in own) else None
    notes = dict.fromkeys(str(row["note"]) for row in rows if row.get("note"))
    return Line(
        *(table, published, found, verdict(published, found)),
        tuple(part.asked.seed for part in parts),
        sum(part.cpu_seconds for part in parts),
        "; ".join([*notes, *reasons]),
    )


def quoted(text: str) -> str:
    """For a shell, in double quotes where that is enough, which is easier to read."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
