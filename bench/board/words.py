"""A board's numbers as a reader sees them: scores with intervals, worst cases, counts, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.board import STATUSES, Arena, Board
from fedarena.board.standing import Cut, Score, Standing, marked
from fedarena.core.text.mean import Mean
from fedarena.core.text.numbers import share
from fedarena.core.text.plural import plural
from fedarena.core.threat import EVERYONE, KNOWLEDGE
from fedarena.federation.integrity import ABOVE_CHANCE

NOTHING = "–"
"""Where there is no number."""

DAGGER = "†"
"""Of defenses and cells whose runs are marked: their numbers must not be read without what `marks` says."""

HOW = (
    "Every score is in [0, 1], higher is better for the defender: utility is clean accuracy over FedAvg's (0 of a "
    "model that diverged), "
    "integrity the worst case over poisoning attacks of the share of what was learned that the attack leaves, "
    "privacy the worst case over inference attacks on clients' data of 1 − the attacker's advantage over "
    "guessing, and overall the mean of those that are asked about, over seeds that all of them have. On a seed on "
    f"which the defense has learned nothing while nobody poisons (less than {ABOVE_CHANCE:g} above a constant "
    "prediction) its integrity is 0 where FedAvg has learned something, and there is none where FedAvg has not.",
    "The worst case is the cell with the lowest mean over seeds, in paper or adaptive form; ± is the 95 % "
    "interval of that cell over its seeds (Student's t; where it leaves [0, 1], cut and given by its ends), with "
    "no allowance for having been chosen as the worst; columns in paper form look at attacks only as their papers "
    "tried them; plain FedAvg, which has no paper to be read, meets an attack in one form, which stands in both.",
    "n/a is an attack that could not start, which counts as withstood; a defense that failed at an attack, or did"
    " not meet one that another met, has no rank; equal to three digits is a tie, which goes to fewer bytes, then"
    " to less time.",
)
"""How scores are made."""


def interval(m: Mean | None) -> str:
    """A share with its interval, where there is one."""
    return NOTHING if m is None else share(m)


def score(s: Score) -> str:
    """A score with its interval; n/a where no attack could start."""
    return "n/a" if s.value is not None and not s.cells else interval(s.value)


def average(s: Score) -> str:
    """The mean over all cells, beside a worst case."""
    return NOTHING if s.average is None else f"{s.average:.2f}"


def case(s: Score, several: bool) -> str:
    """Whose the worst case is: attack, who, form, and the problem where there are several."""
    if s.worst is None:
        return "no attack could start" if s.value is not None and not s.cells else NOTHING
    by = f", found by {s.worst.found_by}" if s.worst.found_by else ""
    return f"{s.worst.attack}: {s.worst.threat}{f', on {s.worst.problem}' if several else ''}{by}"


def times(x: float | None) -> str:
    """A cost beside FedAvg's."""
    return NOTHING if x is None else f"{x:.2f} ×"


def counts(found: Mapping[str, int]) -> str:
    """ "12 ok, 3 n/a"."""
    told = [f"{found[name]} {name}" for name in (*STATUSES, *sorted(set(found) - set(STATUSES))) if found.get(name)]
    return ", ".join(told) or "none"


def parties(board: Board, cut: Cut) -> list[str]:
    """Curious parties of the cut that the board has counted cells of."""
    there = {c.party for c in board.cells if c.axis == "privacy" and c.counts}
    return [p for p in cut.parties if p in there]


def several(board: Board) -> bool:
    """Whether the problem must be named."""
    return len({c.problem for c in board.cells} | {h.problem for h in board.honest}) > 1


def seeds(board: Board) -> str:
    """Which seeds, and what they can tell."""
    if not board.seeds:
        return "no seeds: nothing was measured"
    if len(board.seeds) == 1:
        return f"one seed ({board.seeds[0]}): no interval, and differences may be chance"
    return f"{plural(len(board.seeds), 'seed')} ({', '.join(map(str, board.seeds))}); intervals are 95 % over seeds"


def asked(cut: Cut) -> str:
    """The threats that count."""
    return cut.told or "all threats on the board"


def asked_problems(board: Board, cut: Cut) -> list[Arena]:
    """The problems that count."""
    return [a for a in board.arenas if not cut.problems or a.name in cut.problems]


def unmeasured(board: Board, cut: Cut) -> list[str]:
    """Threats that are asked about and that no attack of the board poses."""
    mine = [c for c in board.cells if cut.has(c)]
    who = {c.party for c in mine if c.axis == "privacy"}
    knows = {c.knows for c in mine if c.axis == "integrity"}
    return [f"a curious {p}" for p in EVERYONE if p in cut.parties and p not in who] + [
        f"corrupted clients ({k})" for k in KNOWLEDGE if k in cut.knows and k not in knows
    ]


def notes(board: Board, cut: Cut, rows: Sequence[Standing]) -> list[str]:
    """What a reader must know first: the board's own notes, what is missing from data, marks, who found what.

    Args:
        rows: `standings(board, cut)`.
    """
    told = [*board.notes, *_several_made(board), *marks(board, cut), *_fewer(rows, cut), *_aside(board, cut)]
    found = [c for c in board.cells if cut.has(c)]
    by_others = sorted({f"{c.attack} ({c.found_by})" for c in found if c.found_by})
    told += [f"attacks by others: {', '.join(by_others)}"] if by_others else []
    return told


def _fewer(rows: Sequence[Standing], cut: Cut) -> list[str]:
    """Whose overall score is over fewer seeds than its parts, so that it is not the mean of what stands beside it."""
    told = []
    for row in rows:
        parts = [getattr(row, name).by_seed for name in cut.axes]
        seeds = sorted(set().union(*parts))
        if row.overall.by_seed and (less := [s for s in seeds if s not in row.overall.by_seed]):
            lacking = [name for name, part in zip(cut.axes, parts, strict=True) if any(s not in part for s in less)]
            over = f"{len(seeds) - len(less)} of {len(seeds)} seeds"
            told.append(f"{row.defense}: overall is over {over}, since on others it has no {' or '.join(lacking)}")
    return told


def _aside(board: Board, cut: Cut) -> list[str]:
    """Problems asked about whose attacks count in no score."""
    beside = {c.problem for c in board.cells if cut.asks(c)} - {c.problem for c in board.cells if cut.has(c)}
    names = [a.name for a in board.arenas if a.name in beside]
    return [f"{name}: its attacks are on the board and count in no score" for name in names]


def _several_made(board: Board) -> list[str]:
    """Records of several versions differ by more than their seeds."""
    told = []
    for name, what in (("fedarena", "versions of fedarena"), ("commit", "commits"), ("torch", "versions of torch")):
        found = [part for part in board.made.get(name, "").split(", ") if part]
        if len(found) > 1:
            told.append(f"measured by {len(found)} {what}: {', '.join(found)}")
    return told


def marks(board: Board, cut: Cut | None = None) -> list[str]:
    """What must stand beside numbers: what is missing from data, and the marks of runs."""
    cut = cut or Cut()
    told = [f"{a.name}: a subset of the data, {a.subset}" for a in asked_problems(board, cut) if a.subset]
    found: dict[str, dict[str, None]] = {}
    for defense in board.defenses:
        mine = marked(board, cut, defense)
        runs = {h.problem for h in board.honest if h.defense == defense}
        on = runs & set(cut.problems) if cut.problems else runs
        for mark in dict.fromkeys(mark for _, mark in mine):
            where = list(dict.fromkeys(problem for problem, one in mine if one == mark))
            name = defense if on <= set(where) else f"{defense} on {', '.join(where)}"
            found.setdefault(mark, {})[name] = None
    return told + [f"{DAGGER} {', '.join(whom)}: {mark}" for mark, whom in found.items()]


def labelled(row: Standing) -> str:
    """A defense's, with the sign where its runs are marked; what with is told of by `marks`."""
    return f"{row.defense} {DAGGER}" if row.marks else row.defense


def unranked(row: Standing) -> str:
    """Why a defense has no rank; empty where it has one."""
    return f"no rank: {row.unranked}" if row.unranked else ""


def reasons(rows: Sequence[Standing]) -> list[str]:
    """Who has no rank, one line a reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.unranked:
            found.setdefault(row.unranked, []).append(row.defense)
    return [f"No rank: {', '.join(whom)} ({why})" for why, whom in found.items()]


def made(board: Board) -> str:
    """By what and when."""
    names = {"fedarena": "fedarena", "commit": "commit", "newest": "newest record"}
    told = [f"{names.get(name, name)} {value}" for name, value in board.made.items() if value]
    return ", ".join(told)
