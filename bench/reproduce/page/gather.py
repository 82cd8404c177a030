"""All published numbers of all tables, each with what was measured of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedarena.core.text.numbers import Mean
from fedarena.reproduce.page.parts import MeasuredPart, PartKey, guesses, load, published
from fedarena.reproduce.page.shared import elsewhere
from fedarena.reproduce.page.verdict import Verdict, difference, ours_of, verdict
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row
from fedarena.reproduce.tables import TABLES, table_of


@dataclass(frozen=True)
class Comparison:
    """One published number, and ours.

    Attributes:
        ours: what was measured, as a number or in words; None if there is nothing.
        verdict: see `fedarena.reproduce.page.verdict`.
        seeds: those that ours was measured with.
        cpu_seconds: what its part took, all seeds together. The part may hold other numbers, too.
        reason: why a part that failed gave no number.
    """

    table: str
    published: Published
    ours: Mean | str | None
    verdict: Verdict
    seeds: tuple[int, ...]
    cpu_seconds: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return difference(self.published, self.ours)

    @property
    def command(self) -> str:
        """The command that measures the number, and whatever else of the table begins with its name."""
        only = "" if self.published.piece == "all" else f" --only {quoted(self.published.piece)}"
        seeds = "" if self.seeds in ((), (0,)) else f" --seeds {','.join(map(str, self.seeds))}"
        return f"bench reproduce {self.table}{only}{seeds}"


@dataclass(frozen=True)
class Gathered:
    """All comparisons, and what they were made of.

    Attributes:
        comparisons: by table.
        settings: of the tables that have comparisons.
        without: tables without a published number.
        missing: parts that a comparison needs and that are not there, in the order of the tables.
        parts: those that are there and hold, of tables with comparisons. A part that is made of another table's part is
            not among them; the other part is.
        times: CPU seconds of these, and the expected ones of parts that were given up.
        complaints: a line for every file that could not be used.
    """

    comparisons: Mapping[str, Sequence[Comparison]]
    settings: Mapping[str, str]
    without: Sequence[str]
    missing: Sequence[PartKey]
    parts: Sequence[MeasuredPart]
    times: Mapping[PartKey, float]
    complaints: Sequence[str]

    @property
    def all(self) -> list[Comparison]:
        """The comparisons of all tables."""
        return [comparison for own in self.comparisons.values() for comparison in own]


@dataclass(frozen=True)
class TableParts:
    """What is there of one table.

    Attributes:
        by_piece: the parts of each piece that has a published number, in the order of their seeds, made of other
            tables' parts where they have none of their own.
        used: the parts that these are made of.
        missing: parts that are not there.
    """

    by_piece: Mapping[str, Sequence[MeasuredPart]]
    used: Sequence[MeasuredPart]
    missing: Sequence[PartKey]


@dataclass(frozen=True)
class AvailableParts:
    """The parts of all tables that are there and hold, and the seeds that count.

    Attributes:
        parts, complaints: by table.
        seeds: those that count; None: all that are there.
    """

    parts: Mapping[str, Sequence[MeasuredPart]]
    complaints: Mapping[str, Sequence[str]]
    seeds: Sequence[int] | None

    @property
    def every_seed(self) -> set[int]:
        """All seeds that some part was measured with."""
        return {part.key.seed for own in self.parts.values() for part in own}

    def of_table(self, table: str, pieces: Iterable[str]) -> TableParts:
        """What is there of these pieces of a table."""
        by_piece: dict[str, list[MeasuredPart]] = {piece: [] for piece in pieces}
        for part in self.parts[table]:
            if part.key.piece in by_piece and self.counts(part.key.seed):
                by_piece[part.key.piece].append(part)
        own = [part for parts in by_piece.values() for part in parts]
        lent = self._lent(table, by_piece)
        for key, part in lent.items():
            by_piece[key.piece].append(part)
        return TableParts(
            by_piece={piece: _in_order(parts) for piece, parts in by_piece.items()},
            used=[*own, *self._lenders(lent.values())],
            missing=self._missing(table, by_piece),
        )

    def counts(self, seed: int) -> bool:
        """Whether parts with the seed count."""
        return self.seeds is None or seed in self.seeds

    def _lent(self, table: str, by_piece: Mapping[str, Sequence[MeasuredPart]]) -> dict[PartKey, MeasuredPart]:
        """Of the parts that are not there, those that are made of other tables' parts."""
        wanted = self.every_seed if self.seeds is None else self.seeds
        return elsewhere(_absent(table, by_piece, wanted), lambda other: self.parts[other])

    def _lenders(self, lent: Iterable[MeasuredPart]) -> list[MeasuredPart]:
        """The parts that these are made of."""
        names = {part.run_of for part in lent}
        return [part for parts in self.parts.values() for part in parts if part.key.name in names]

    def _missing(self, table: str, by_piece: Mapping[str, Sequence[MeasuredPart]]) -> list[PartKey]:
        if self.seeds is not None:
            return _absent(table, by_piece, self.seeds)
        return [PartKey(table, piece, 0) for piece, parts in by_piece.items() if not parts]


def gather(
    out: Path,
    report: Path,
    seeds: Sequence[int] | None = None,
    only: str = "",
    failed: Mapping[PartKey, str] | None = None,
) -> Gathered:
    """Read what is in the folder, and of what is not there what is published beside the page.

    Args:
        out: the folder with the parts.
        report: the folder with the page.
        seeds: those that count. None: all that are there, and seed 0 is missing of a piece that has none.
        only: how the names "table: piece" begin.
        failed: parts that were tried and went wrong, with the reason.
    """
    before, complaints = published(report)
    available = _available(out, before, seeds)
    comparisons: dict[str, list[Comparison]] = {}
    settings: dict[str, str] = {}
    times: dict[PartKey, float] = {}
    used: dict[PartKey, MeasuredPart] = {}  # one may be lent to several tables
    missing: list[PartKey] = []
    for table in TABLES:
        numbers = [p for p in table_of(table).published if f"{table}: {p.piece}".startswith(only)]
        if not numbers:
            continue
        complaints += available.complaints[table]
        there = available.of_table(table, (p.piece for p in numbers))
        comparisons[table] = [_compare(table, p, there.by_piece[p.piece], failed or {}) for p in numbers]
        settings[table] = table_of(table).setting
        missing += there.missing
        used |= {part.key: part for part in there.used}
        times |= guesses(out, table) | {part.key: part.cpu_seconds for part in available.parts[table]}
    return Gathered(
        comparisons=comparisons,
        settings=settings,
        without=[table for table in TABLES if not table_of(table).published and table.startswith(only)],
        missing=missing,
        parts=list(used.values()),
        times=times,
        complaints=complaints,
    )


def _available(out: Path, before: Sequence[MeasuredPart], seeds: Sequence[int] | None) -> AvailableParts:
    there = {table: holding(out, table, before) for table in TABLES}
    return AvailableParts(
        parts={table: parts for table, (parts, _) in there.items()},
        complaints={table: complaints for table, (_, complaints) in there.items()},
        seeds=seeds,
    )


def _absent(table: str, by_piece: Mapping[str, Sequence[MeasuredPart]], seeds: Iterable[int]) -> list[PartKey]:
    """The parts with these seeds that are not there."""
    there = {(piece, part.key.seed) for piece, own in by_piece.items() for part in own}
    return [PartKey(table, piece, seed) for piece in by_piece for seed in seeds if (piece, seed) not in there]


def holding(out: Path, table: str, before: Sequence[MeasuredPart] = ()) -> tuple[list[MeasuredPart], list[str]]:
    """A table's parts that hold, those in the folder before those published, and a line for each that is of no use."""
    setting = table_of(table).setting
    own, complaints = load(out, table)
    held = {part.key: part for part in own if part.holds(setting)}
    rest = [part for part in (*own, *before) if part.key.table == table and part.key not in held]
    held |= {part.key: part for part in rest if part.holds(setting)}
    stale = {
        part.key: f"{part.key.name} was measured by version {part.environment['fedarena']} or in another "
        "setting; it counts as not measured"
        for part in rest
        if part.key not in held
    }
    return _in_order(held.values()), [*complaints, *stale.values()]


def _in_order(parts: Iterable[MeasuredPart]) -> list[MeasuredPart]:
    return sorted(parts, key=lambda part: part.key.seed)


def _compare(
    table: str, published: Published, parts: Sequence[MeasuredPart], failed: Mapping[PartKey, str]
) -> Comparison:
    reasons = [why for key, why in failed.items() if (key.table, key.piece) == (table, published.piece)]
    by_seed = [[row for row in part.rows if published.is_of(row)] for part in parts]
    ours = _ours(published, by_seed)
    notes = dict.fromkeys(str(row["note"]) for rows in by_seed for row in rows if row.get("note"))
    return Comparison(
        table=table,
        published=published,
        ours=ours,
        verdict=verdict(published, ours) if parts else "not measured",
        seeds=tuple(part.key.seed for part in parts),
        cpu_seconds=sum(part.cpu_seconds for part in parts) if parts else None,
        reason="; ".join([*notes, *reasons]) if parts else next(iter(reasons), ""),
    )


def _ours(published: Published, by_seed: Sequence[Sequence[Row]]) -> Mean | str | None:
    """Ours over all seeds. A mean over what is not one row a seed would be of something else: there is none."""
    if any(len(rows) != 1 for rows in by_seed):
        return None
    return ours_of([rows[0].get(published.column) for rows in by_seed])


def quoted(text: str) -> str:
    """For a shell, in double quotes where that is enough, which is easier to read."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
