"""Records in Python: those of a folder, and those of a run with its verdict, table and figure."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fedarena.api.arguments import path_of
from fedarena.core.short_repr import ShortRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from fedarena.cli.output.terminal import Terminal
    from fedarena.federation.spec import MethodSpec
    from fedarena.goals.pairing_table import PairingTable
    from fedarena.records.results import GroupResult
    from fedarena.records.saved_transcript import Transcript
    from fedarena.records.schema import Record


@dataclass(frozen=True, repr=False)
class Records(ShortRepr, Sequence["Record"]):
    """Records, as files have them: a sequence of dictionaries (`fedarena.records.schema.Record`)."""

    records: tuple[Record, ...]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return self.records[index]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def to_frame(self) -> DataFrame:
        """One row for each record. See `fedarena.records.frame.to_frame`."""
        from fedarena.records.frame import to_frame

        return to_frame(self.records)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(max_rows=20))


@dataclass(frozen=True, repr=False)
class Results(Records):
    """The records of one defense against one attack, beside no defense.

    Attributes:
        defense, attack: their names.
    """

    defense: str
    attack: str
    _groups: tuple[GroupResult, ...]

    @property
    def failed(self) -> bool:
        """Whether a trial failed."""
        return any(record["status"] == "failed" for record in self.records)

    @property
    def verdict(self) -> str:
        """What came of it, in one sentence."""
        return self._table().verdict

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the verdict leaves unsaid, a sentence each: other forms, parties and knowledge, lost accuracy."""
        return self._table().remarks

    def table(self) -> None:
        """Print the verdict, the table, its notes and the remarks, as `bench run` does."""
        from fedarena.cli.output.pairing import WIDTH
        from fedarena.cli.output.terminal import Terminal, stdout_width

        self._show(Terminal(width=stdout_width(WIDTH)))

    def plot(self) -> Figure | None:
        """The pairing's picture: pictures read from uploads, curves of accuracy, … None where there is none."""
        from fedarena import goals
        from fedarena.cli.output.pairing import drawn

        content = goals.of_attack(self._attack()).figure(self._groups, self.defense, self.attack)
        return None if content is None else drawn(content)

    def __repr__(self) -> str:
        return f"<Results: {self.attack} against {self.defense}, {len(self)} records>"

    def _attack(self) -> MethodSpec:
        return next(group.spec.attack for group in self._groups if group.spec.attack is not None)

    def _table(self) -> PairingTable:
        from fedarena import goals

        return goals.of_attack(self._attack()).table(self.records, self.defense, self.attack)

    def _show(self, console: Terminal) -> None:
        from fedarena.cli.output.pairing import show

        show(console, self._table(), self.records, self.defense, self.attack)

    def _repr_html_(self) -> str:
        from fedarena.cli.output.pairing import WIDTH
        from fedarena.cli.output.terminal import Terminal

        page = Terminal(record=True, width=WIDTH, file=io.StringIO())
        self._show(page)
        return page.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def read_records(folder: str | Path) -> Records:
    """The records of a folder, such as `runs` or `runs/smoke`; damaged and outdated files are left out.

    Raises:
        UserError: there are no records in it.
    """
    from fedarena.records.store import Store

    store = Store(path_of("folder", folder))
    store.require_records()
    return Records(tuple(record for key in store.complete() for record in store.trial(key)))


def read_transcript(folder: str | Path) -> Transcript:
    """What crossed the wires of a run, as `fa.run(..., save_transcript=…)` wrote it.

    Args:
        folder: that of one run, such as `wires/dbcl-seed-0`.

    Returns:
        `fedarena.records.saved_transcript.Transcript`: its `facts`, its `rounds`, and what each party sees of them.

    Raises:
        UserError: there is none, or its files are not what was written.
    """
    from fedarena.records import saved_transcript

    return saved_transcript.read_transcript(path_of("folder", folder))
