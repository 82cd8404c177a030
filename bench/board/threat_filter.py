"""The threats and problems that a reader chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fedarena.board.board import Board, BoardCell
from fedarena.core.errors import UserError
from fedarena.core.threat import EVERYONE, KNOWLEDGE


@dataclass(frozen=True)
class ThreatFilter:
    """The threats that a reader has.

    Attributes:
        parties: curious parties whose inference attacks count; () for none.
        knows: what corrupted clients may know; () for no corrupted clients.
        problems: names of problems; () for all.
    """

    parties: tuple[str, ...] = EVERYONE
    knows: tuple[str, ...] = KNOWLEDGE
    problems: tuple[str, ...] = ()

    def counts(self, cell: BoardCell) -> bool:
        """Whether the filter admits the cell and the cell counts in scores."""
        return cell.counts and self.admits(cell)

    def admits(self, cell: BoardCell) -> bool:
        """Whether the filter admits the cell's threat and problem, even if the cell does not count in scores."""
        if not self.has_problem(cell.problem):
            return False
        if cell.axis != "integrity":
            # A malicious server is no curious party: its cells stand beside theirs, and count in no score.
            return cell.party in self.parties or (cell.party not in EVERYONE and bool(self.parties))
        return cell.knows in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        """What corrupted clients of an admitted cell may know, computed once for the many cells of a board."""
        # An attacker who knows more can do everything that a less informed one can do.
        return frozenset({*self.knows, *KNOWLEDGE[: max(map(KNOWLEDGE.index, self.knows), default=0)]})

    def has_problem(self, name: str) -> bool:
        """Whether the filter admits the problem of this name."""
        return not self.problems or name in self.problems

    @property
    def axes(self) -> tuple[str, ...]:
        """The scores whose mean is the overall score; an axis without a threat does not count."""
        integrity, privacy = ("integrity",) * bool(self.knows), ("privacy",) * bool(self.parties)
        return ("utility", *integrity, *privacy)

    @property
    def attacked_axes(self) -> tuple[str, ...]:
        """The axes that have attacks: all but utility."""
        return self.axes[1:]

    @property
    def description(self) -> str:
        """The filter in words; empty for all threats."""
        parts = []
        if (self.parties, self.knows) != (EVERYONE, KNOWLEDGE):
            who = "any curious party" if self.parties == EVERYONE else f"curious {' or '.join(self.parties)}"
            what = "corrupted clients" + (f" ({' or '.join(self.knows)})" if self.knows != KNOWLEDGE else "")
            parts = [who if self.parties else "no curious party", what if self.knows else "no corrupted clients"]
        if self.problems:
            parts.append(f"problems {', '.join(self.problems)}")
        return "; ".join(parts)


def read_threat_filter(text: str | None, problems: Sequence[str] = ()) -> ThreatFilter:
    """The filter of words such as "server,own": curious parties, and what corrupted clients know.

    Naming parties alone means that no client is corrupted, and naming knowledge alone that no party is curious.

    Raises:
        UserError: a word is neither a party nor a kind of knowledge.
    """
    if text is None:
        return ThreatFilter(problems=tuple(problems))
    words = [w.strip() for w in text.split(",") if w.strip()]
    for word in words or [text]:
        if word not in (*EVERYONE, *KNOWLEDGE):
            allowed = ", ".join((*EVERYONE, *KNOWLEDGE))
            raise UserError(f"option 'threats' is '{word}', allowed: {allowed}")
    knows = tuple(k for k in KNOWLEDGE if k in words)
    return ThreatFilter(
        parties=tuple(p for p in EVERYONE if p in words),
        # The least is part of every other one, so that naming all others names all.
        knows=KNOWLEDGE if knows == KNOWLEDGE[1:] else knows,
        problems=tuple(problems),
    )


def threats_on(board: Board, problems: Sequence[str] = ()) -> ThreatFilter:
    """The filter where the reader names no threats: all threats, without an axis that no attack of the board is on.

    Such an axis would leave every defense without a rank. Where it has cells and none counts, a note says so
    (`fedarena.board.notes`).
    """
    threats = ThreatFilter(problems=tuple(problems))
    axes = {c.axis for c in board.cells if threats.counts(c)}
    if not axes:
        return threats
    parties, knowledge = EVERYONE if "privacy" in axes else (), KNOWLEDGE if "integrity" in axes else ()
    return replace(threats, parties=parties, knows=knowledge)


def within(board: Board, threats: ThreatFilter) -> Board:
    """The board with only the problems and cells that the filter admits."""
    return replace(
        board,
        problems=tuple(p for p in board.problems if threats.has_problem(p.name)),
        clean_runs=tuple(r for r in board.clean_runs if threats.has_problem(r.problem)),
        cells=tuple(c for c in board.cells if threats.admits(c)),
    )
