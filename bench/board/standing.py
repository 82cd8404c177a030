"""A board's cells → each defense's scores and rank.

All scores are in [0, 1], higher is better for the defender:

    utility    mean over problems of clean accuracy / FedAvg's, where the problem is one for utility
    integrity  the worst case over poisoning attacks of what the attack leaves of what was learned
    privacy    the worst case over inference attacks on clients' data of 1 − leak
    overall    the mean of the three

The worst case is the cell with the lowest mean over seeds; its interval is that cell's own, so that a worst case chosen
among many carries no allowance for the choice. An attacker who adapts may still do what the paper tried: `paper`
columns look at cells in paper form alone, all others at cells of either form, and ranks use these. What has no paper to
be read, as plain FedAvg, meets an attack in one form, which stands in both. Overall is worked out seed by seed, over
seeds that all three have, and ties are broken by cost.

A defense is ranked only if it has all three, and has met every attack and threat that is asked about: a worst case over
fewer attacks is no worst case. n/a counts as met (there was nothing that the attack could start from), failed and
missing do not; of a cell whose seeds disagree one failed seed is enough, or failures would be averaged away. Where
every attack is n/a the worst case is 1 and no cell's: nothing of that kind can be started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import fmean

from fedarena.board.board import Board, BySeed, Cell
from fedarena.core.errors import UserError
from fedarena.core.text.mean import Mean, mean
from fedarena.core.threat import EVERYONE, KNOWLEDGE


@dataclass(frozen=True)
class Cut:
    """The threats that a reader has.

    Attributes:
        parties: curious parties whose inference counts; () for none.
        knows: what corrupted clients may know; () for none.
        problems: names of problems; () for all.
    """

    parties: tuple[str, ...] = EVERYONE
    knows: tuple[str, ...] = KNOWLEDGE
    problems: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        """Whether the cell counts."""
        return cell.counts and self.asks(cell)

    def asks(self, cell: Cell) -> bool:
        """Whether its threat and its problem are asked about, even if it stands beside the scores."""
        if self.problems and cell.problem not in self.problems:
            return False
        if cell.axis != "integrity":
            return cell.party in self.parties
        # Who knows every honest upload can do whatever can be done without.
        return cell.knows in self.knows or (cell.knows == "own" and "omniscient" in self.knows)

    @property
    def axes(self) -> tuple[str, ...]:
        """The scores that make the overall one: what nobody threatens does not count."""
        found = ["utility", *(["integrity"] if self.knows else []), *(["privacy"] if self.parties else [])]
        return tuple(found)

    @property
    def told(self) -> str:
        """In words; empty for all threats."""
        told = []
        if (self.parties, self.knows) != (EVERYONE, KNOWLEDGE):
            who = "any curious party" if self.parties == EVERYONE else f"curious {' or '.join(self.parties)}"
            what = "corrupted clients" + (f" ({' or '.join(self.knows)})" if self.knows != KNOWLEDGE else "")
            told = [who if self.parties else "no curious party", what if self.knows else "no corrupted clients"]
        if self.problems:
            told.append(f"problems {', '.join(self.problems)}")
        return "; ".join(told)


def read_cut(text: str | None, problems: Sequence[str] = ()) -> Cut:
    """A cut from words such as "server,own": curious parties, and what corrupted clients know. Raises UserError.

    Naming a party alone means that nobody is corrupted, and the other way round.
    """
    if text is None:
        return Cut(problems=tuple(problems))
    words = [w.strip() for w in text.split(",") if w.strip()]
    for word in words or [text]:
        if word not in (*EVERYONE, *KNOWLEDGE):
            allowed = ", ".join((*EVERYONE, *KNOWLEDGE))
            raise UserError(f"option 'threats' is '{word}', allowed: {allowed}")
    return Cut(tuple(p for p in EVERYONE if p in words), tuple(k for k in KNOWLEDGE if k in words), tuple(problems))


def threats_on(board: Board, problems: Sequence[str] = ()) -> Cut:
    """What is asked about where nobody says: all threats, but for an axis that none of the board's attacks is on, since
    by that one nobody could be ranked."""
    cut = Cut(problems=tuple(problems))
    axes = {c.axis for c in board.cells if cut.has(c)}
    if not axes:
        return cut
    return replace(cut, parties=EVERYONE if "privacy" in axes else (), knows=KNOWLEDGE if "integrity" in axes else ())


@dataclass(frozen=True)
class Score:
    """A mean over seeds, and the cell that it is of.

    Attributes:
        value: None where there is nothing to score.
        by_seed: as far as there is one.
        worst: the cell, of worst cases.
        average: the mean over all cells that have a score, of worst cases.
        cells: how many have one; 0 beside a value: no attack could start.
    """

    value: Mean | None
    by_seed: BySeed = field(default_factory=dict)
    worst: Cell | None = None
    average: float | None = None
    cells: int = 0


@dataclass(frozen=True)
class Standing:
    """One defense's row.

    Attributes:
        rank: from 1; None where it is not ranked, `unranked` says why.
        overall, utility, integrity, privacy: against attackers of either form.
        paper_integrity, paper_privacy: against attacks in paper form alone.
        by_party: privacy against each curious party that the cut has.
        bytes: up and down per client and round, over FedAvg's; mean over problems. seconds: training time over
            FedAvg's.
        counts: cells by status, of those that the cut has.
        marks: what must stand beside its numbers, of honest runs and of cells that the cut has.
    """

    defense: str
    rank: int | None
    unranked: str
    overall: Score
    utility: Score
    integrity: Score
    privacy: Score
    paper_integrity: Score
    paper_privacy: Score
    by_party: dict[str, Score]
    bytes: float | None
    seconds: float | None
    counts: dict[str, int]
    marks: tuple[str, ...] = ()


def standings(board: Board, cut: Cut | None = None) -> list[Standing]:
    """Every defense's row, ranked ones first. `threats_on` the board where there is no cut."""
    cut = cut or threats_on(board)
    tried = {c.attempt for c in board.cells if c.form == "paper"}
    rows = [_row(board, defense, cut, tried) for defense in board.defenses]

    def order(row: Standing) -> tuple[bool, float, float, float]:
        value = row.overall.value.value if row.overall.value else 0.0
        # Equal to three digits is a tie, which is what a reader sees.
        return (bool(row.unranked), -round(value, 3), row.bytes or math.inf, row.seconds or math.inf)

    ordered = sorted(rows, key=order)
    ranked = [row for row in ordered if not row.unranked]
    return [Standing(**{**vars(row), "rank": i}) for i, row in enumerate(ranked, 1)] + ordered[len(ranked) :]


def within(board: Board, cut: Cut) -> Board:
    """The board with nothing but the threats and the problems that are asked about."""
    return replace(
        board,
        arenas=tuple(a for a in board.arenas if not cut.problems or a.name in cut.problems),
        honest=tuple(h for h in board.honest if not cut.problems or h.problem in cut.problems),
        cells=tuple(c for c in board.cells if cut.asks(c)),
    )


def marked(board: Board, cut: Cut, defense: str) -> list[tuple[str, str]]:
    """(problem, mark) of its honest runs and of cells that the cut has."""
    runs = [h for h in board.honest if h.defense == defense and (not cut.problems or h.problem in cut.problems)]
    cells = [c for c in board.cells if c.defense == defense and cut.has(c)]
    found = [(h.problem, mark) for h in runs for mark in h.marks]
    return found + [(c.problem, mark) for c in cells for mark in c.marks]


def worst(cells: Sequence[Cell]) -> Score:
    """The cell with the lowest mean score; 1 where there are cells and each is n/a."""
    scored = [c for c in cells if c.scores]
    if not scored:
        seeds = set.intersection(*(set(c.statuses) for c in cells)) if cells else set()
        if not seeds or any(c.status != "n/a" for c in cells):
            return Score(None)
        untouched = dict.fromkeys(sorted(seeds), 1.0)
        return Score(mean(list(untouched.values())), untouched)
    # Among equals the same one, in whatever order cells come: what the paper's form does already first.
    found = min(scored, key=lambda c: (fmean(c.scores.values()), c.form != "paper", c.place))
    average = fmean(fmean(c.scores.values()) for c in scored)
    return Score(mean(list(found.scores.values())), found.scores, found, average, len(scored))


def _row(board: Board, defense: str, cut: Cut, tried: Set[tuple[str, ...]]) -> Standing:
    mine = [c for c in board.cells if c.defense == defense and cut.has(c)]
    utility = _utility(board, defense, cut)
    axis = {name: [c for c in mine if c.axis == name] for name in ("integrity", "privacy")}
    scores = {"utility": utility, **{name: worst(cells) for name, cells in axis.items()}}
    paper = {name: worst(_in_paper_form(cells, tried)) for name, cells in axis.items()}
    overall = _overall([scores[name] for name in cut.axes])
    counts: dict[str, int] = {}
    for c in mine:
        counts[c.status] = counts.get(c.status, 0) + 1
    up_and_down, seconds = _cost(board, defense, cut)
    return Standing(
        defense,
        None,
        _unranked(board, cut, mine, {name: scores[name] for name in cut.axes}, overall),
        overall,
        utility,
        scores["integrity"],
        scores["privacy"],
        paper["integrity"],
        paper["privacy"],
        {p: worst([c for c in axis["privacy"] if c.party == p]) for p in cut.parties},
        up_and_down,
        seconds,
        counts,
        tuple(dict.fromkeys(mark for _, mark in marked(board, cut, defense))),
    )


def _in_paper_form(mine: Sequence[Cell], tried: Set[tuple[str, ...]]) -> list[Cell]:
    """A defense's cells in paper form; what was `tried` so on others and on it in adaptive form alone, in that one."""
    only_adaptive = tried - {c.attempt for c in mine if c.form == "paper"}
    return [c for c in mine if c.form == "paper" or c.attempt in only_adaptive]


def useful(board: Board) -> list[str]:
    """Problems whose accuracy counts as utility: where a cell counts too, so that every ranked defense was tried there;
    all that are for utility, on a board where none does."""
    found = [a.name for a in board.arenas if a.utility]
    counting = {c.problem for c in board.cells if c.counts}
    return [name for name in found if name in counting] or found


def _utility(board: Board, defense: str, cut: Cut) -> Score:
    """Mean over problems, seed by seed, over seeds that every problem has."""
    told = {name for name in useful(board) if not cut.problems or name in cut.problems}
    parts = [h.utility for h in board.honest if h.defense == defense and h.problem in told]
    parts = [part for part in parts if part]
    return _together(parts)


def _overall(scores: Sequence[Score]) -> Score:
    if not scores or any(s.value is None for s in scores):
        return Score(None)
    return _together([s.by_seed for s in scores])


def _together(parts: Sequence[BySeed]) -> Score:
    seeds = sorted(set.intersection(*(set(p) for p in parts))) if parts else []
    by_seed = {s: fmean(p[s] for p in parts) for s in seeds}
    return Score(mean(list(by_seed.values())), by_seed, cells=len(parts)) if by_seed else Score(None)


def _cost(board: Board, defense: str, cut: Cut) -> tuple[float | None, float | None]:
    plain = {h.problem: h for h in board.honest if h.defense == "fedavg"}
    mine = [h for h in board.honest if h.defense == defense and (not cut.problems or h.problem in cut.problems)]
    shares = [
        (h.bytes_up + h.bytes_down) / (plain[h.problem].bytes_up + plain[h.problem].bytes_down)
        for h in mine
        if h.problem in plain and plain[h.problem].bytes_up + plain[h.problem].bytes_down > 0 and h.keys
    ]
    seconds = [h.relative_seconds for h in mine if h.relative_seconds is not None]
    return (fmean(shares) if shares else None), (fmean(seconds) if seconds else None)


def _unranked(board: Board, cut: Cut, mine: Sequence[Cell], scores: dict[str, Score], overall: Score) -> str:
    """Why a defense has no rank; empty where it has one."""
    lacking = [name for name, score in scores.items() if score.value is None]
    if lacking:
        return f"no {' and no '.join(lacking)} score"
    if overall.value is None:
        return f"no seed that has {', '.join(scores)} all together"
    # What somebody else found against one defense lowers that one's score, and is not asked of the others.
    asked = {c.attempt for c in board.cells if cut.has(c) and not c.found_by}
    met = {c.attempt for c in mine if _met(c)}
    if asked - met:
        return f"{len(asked - met)} of {len(asked)} attacks and threats not met"
    return ""


def _met(cell: Cell) -> bool:
    """Whether a cell says what an attack does to a defense; of seeds that are missing the interval speaks."""
    return cell.status in ("ok", "n/a", "diverged") or (
        cell.status == "mixed" and "failed" not in cell.statuses.values()
    )
