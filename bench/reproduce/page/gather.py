"""Gathers all published numbers of all tables, each with what was measured for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedarena.core.text.numbers import Mean
from fedarena.reproduce.page.parts import MeasuredPart, PartKey, guesses, load, published
from fedarena.reproduce.page.shared import elsewhere
from fedarena.reproduce.page.verdict import APART, Verdict, difference, ours_of, standard_error, tolerance, verdict
from fedarena.reproduce.published import Cause, Published
from fedarena.reproduce.table import Row
from fedarena.reproduce.tables import TABLES, named, table_of


@dataclass(frozen=True)
class Comparison:
    """A published number and our own.

    Attributes:
        ours: what was measured, as a number or in words; None if there is nothing.
        verdict: see `fedarena.reproduce.page.verdict`.
        seeds: the seeds that ours was measured with.
        cpu_seconds: the CPU time of its part, for all seeds together. The part may hold other numbers as well.
        reason: why a part that failed gave no number.
        cause: why ours does not come back, as was shown; "" if no cause was found, or if there is nothing to explain.
        shown_by: the row that shows it, "" if the cause says so itself.
        in_part: whether the number is nearer in that row, but does not come back.
    """

    table: str
    published: Published
    ours: Mean | str | None
    verdict: Verdict
    seeds: tuple[int, ...]
    cpu_seconds: float | None
    reason: str = ""
    cause: str = ""
    shown_by: str = ""
    in_part: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return difference(self.published, self.ours)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the difference; None where the scatter of neither number is known."""
        return standard_error(self.published, self.ours)

    @property
    def command(self) -> str:
        """The command that measures the number, and every other piece of the table that begins with its name."""
        only = "" if self.published.piece == "all" else f" --only {quoted(self.published.selected)}"
        seeds = "" if self.seeds in ((), (0,)) else f" --seeds {','.join(map(str, self.seeds))}"
        return f"bench reproduce {self.table}{only}{seeds}"


@dataclass(frozen=True)
class Gathered:
    """All comparisons, and the parts that they are based on.

    Attributes:
        comparisons: by table.
        settings, notes: the settings of the tables that have comparisons, and what a reader must know of their rows.
        without: tables without a published number.
        missing: missing parts that a comparison needs, in the order of the tables.
        parts: the valid parts of tables with comparisons. A part that is derived from another table's part is not among
            them; the other part is.
        times: the CPU seconds of these, and the expected CPU seconds of parts that were given up.
        complaints: a line for every file that could not be used.
    """

    comparisons: Mapping[str, Sequence[Comparison]]
    settings: Mapping[str, str]
    notes: Mapping[str, Sequence[str]]
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
    """The parts of one table that are there.

    Attributes:
        by_piece: the parts of each piece that has a published number, in the order of their seeds. A piece without own
            parts has parts that are derived from other tables'.
        used: the parts that these are based on.
        missing: the missing parts.
    """

    by_piece: Mapping[str, Sequence[MeasuredPart]]
    used: Sequence[MeasuredPart]
    missing: Sequence[PartKey]


@dataclass(frozen=True)
class AvailableParts:
    """The valid parts of all tables, and the seeds that count.

    Attributes:
        parts, complaints: parts and complaints by table.
        seeds: the seeds that count; None: all that are there.
    """

    parts: Mapping[str, Sequence[MeasuredPart]]
    complaints: Mapping[str, Sequence[str]]
    seeds: Sequence[int] | None

    @property
    def every_seed(self) -> set[int]:
        """All seeds that any part was measured with."""
        return {part.key.seed for own in self.parts.values() for part in own}

    def of_table(self, table: str, pieces: Iterable[str]) -> TableParts:
        """The parts of these pieces of a table."""
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
        """The missing parts that can be derived from other tables' parts."""
        wanted = self.every_seed if self.seeds is None else self.seeds
        return elsewhere(_absent(table, by_piece, wanted), lambda other: self.parts[other])

    def _lenders(self, lent: Iterable[MeasuredPart]) -> list[MeasuredPart]:
        """The other tables' parts that these are derived from."""
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
    """Read the parts in the folder; for missing ones, read those that are published beside the page.

    Args:
        out: the folder with the parts.
        report: the folder with the page.
        seeds: the seeds that count. None: all that are there; a piece without any part lacks seed 0.
        only: how the names "table: piece" begin that are gathered, or one of them as a whole.
        failed: part → reason, for parts whose measurement failed.
    """
    before, complaints = published(report)
    available = _available(out, before, seeds)
    comparisons: dict[str, list[Comparison]] = {}
    settings: dict[str, str] = {}
    times: dict[PartKey, float] = {}
    used: dict[PartKey, MeasuredPart] = {}  # several tables may use one part
    missing: list[PartKey] = []
    for table in TABLES:
        names = named((f"{table}: {p.piece}" for p in table_of(table).published), only)
        numbers = [p for p in table_of(table).published if f"{table}: {p.piece}" in names]
        if not numbers:
            continue
        complaints += available.complaints[table]
        there = available.of_table(table, (piece for p in numbers for piece in p.pieces))
        compared = [_compare(table, p, there.by_piece, failed or {}) for p in numbers]
        comparisons[table] = [_explained(one, available) for one in compared]
        settings[table] = table_of(table).setting
        missing += there.missing
        used |= {part.key: part for part in there.used}
        times |= guesses(out, table) | {part.key: part.cpu_seconds for part in available.parts[table]}
    return Gathered(
        comparisons=comparisons,
        settings=settings,
        notes={table: table_of(table).notes for table in comparisons},
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
    """The missing parts with these seeds."""
    there = {(piece, part.key.seed) for piece, own in by_piece.items() for part in own}
    return [PartKey(table, piece, seed) for piece in by_piece for seed in seeds if (piece, seed) not in there]


def holding(out: Path, table: str, before: Sequence[MeasuredPart] = ()) -> tuple[list[MeasuredPart], list[str]]:
    """A table's valid parts, those in the folder before published ones, and a line for each part that is not valid."""
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
    table: str,
    published: Published,
    by_piece: Mapping[str, Sequence[MeasuredPart]],
    failed: Mapping[PartKey, str],
) -> Comparison:
    reasons = [why for key, why in failed.items() if key.table == table and key.piece in published.pieces]
    complete = all(by_piece[piece] for piece in published.pieces)
    parts = [part for piece in published.pieces for part in by_piece[piece]] if complete else []
    rows = {piece: [_rows_of(part, published) for part in by_piece[piece]] for piece in published.pieces}
    ours = least([_ours(published, by_seed) for by_seed in rows.values()])
    notes = dict.fromkeys(
        str(row["note"]) for by_seed in rows.values() for own in by_seed for row in own if row.get("note")
    )
    return Comparison(
        table=table,
        published=published,
        ours=ours,
        verdict=verdict(published, ours) if parts else "not measured",
        seeds=tuple(sorted({part.key.seed for part in parts})),
        cpu_seconds=sum(part.cpu_seconds for part in parts) if parts else None,
        reason="; ".join([*notes, *reasons]) if parts else next(iter(reasons), ""),
    )


def _rows_of(part: MeasuredPart, published: Published) -> list[Row]:
    return [row for row in part.rows if published.is_of(row)]


def least(ours: Sequence[Mean | str | None]) -> Mean | str | None:
    """The least of several means. Words, or a piece without a result, take precedence."""
    means = [one for one in ours if isinstance(one, Mean)]
    if len(means) < len(ours):
        return next(one for one in ours if not isinstance(one, Mean))
    return min(means, key=lambda mean: mean.value)


def _explained(one: Comparison, available: AvailableParts) -> Comparison:
    """The comparison with its cause: the first that explains all of the difference, else the first that explains some.

    A cause explains some of it where the number is nearer by more than the tolerance in the row without it.
    """
    if one.verdict not in APART:
        return one
    partly = one
    for cause in one.published.causes:
        if not cause.row:
            return replace(one, cause=cause.text)
        row = _row_of(cause, one, available)
        if row is None:
            continue
        number, ours = (row.published, one.ours) if cause.contradiction else (one.published, row.ours)
        explained = replace(one, cause=cause.text, shown_by=cause.row)
        if ours is not None and verdict(number, ours) == "held":
            return explained
        apart, rest = one.difference, difference(number, ours)
        nearer = apart is not None and rest is not None and abs(apart) - abs(rest) > tolerance(one.published)
        if nearer and not partly.cause and not cause.contradiction:
            partly = replace(explained, in_part=True)
    return partly


def _row_of(cause: Cause, one: Comparison, available: AvailableParts) -> Comparison | None:
    """The comparison of the row that shows a cause; None if it is not there."""
    head, _, tail = cause.row.partition(": ")
    table, piece = (head, tail) if head in TABLES else (one.table, cause.row)
    for number in table_of(table).published:
        if (number.piece, number.column, number.row) == (piece, one.published.column, one.published.row):
            return _compare(table, number, available.of_table(table, number.pieces).by_piece, {})
    return None


def _ours(published: Published, by_seed: Sequence[Sequence[Row]]) -> Mean | str | None:
    """Our number over all seeds. There is no mean unless each seed has exactly one row."""
    if any(len(rows) != 1 for rows in by_seed):
        return None
    return ours_of([rows[0].get(published.column) for rows in by_seed])


def quoted(text: str) -> str:
    """A word quoted for a shell: in double quotes where these suffice, since they are easier to read."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
