"""What is compared without a test: what is missing, whose status changed, what is promised, what crosses the wire."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from fedarena.board.board import Arena, Cell, Honest

MORE_BYTES = 0.01
"""More bytes on the wire by this share is a finding."""

ROUNDING = 1e-6
"""Chances that differ by no more are the same: boards keep six decimals."""

NOT_MEASURED = ("failed", "missing")
"""States in which nothing was measured. n/a is a result: there was nothing that the attack could start from."""


@dataclass(frozen=True)
class Found:
    """A difference in words.

    Attributes:
        words: what it is.
        finding: whether a person must look; else it is only told.
    """

    words: str
    finding: bool = True


def cell_changes(base: Cell, new: Cell | None) -> list[Found]:
    """What changed of a cell besides its score; None is a cell that is not on the new board."""
    if base.status == "missing":
        return []
    if new is None or new.status == "missing":
        return [Found("missing: the new board does not have this cell")]
    if what := another_experiment(base, new):
        return [Found(f"another experiment: {what}, so that its score is not compared")]
    found = [
        *_fewer(_there(base.statuses), _there(new.statuses)),
        *_statuses(base, new),
        *_lost(set(base.scores) - set(new.scores) - _moved(base, new), "score"),
        *_untold(base, new),
        *_standing(base, new),
    ]
    if base.status == new.status == "failed":
        found.append(Found("failed on both boards", finding=False))
    if base.versions and new.versions and base.versions != new.versions:
        names = [n for n in sorted({*base.versions, *new.versions}) if base.versions.get(n) != new.versions.get(n)]
        told = ", ".join(f"{n} {base.versions.get(n, '-')} → {new.versions.get(n, '-')}" for n in names)
        found.append(Found(f"versions of methods: {told}", finding=False))
    return found


def another_experiment(base: Cell, new: Cell) -> str:
    """What differs of cells that are not the same experiment; empty where they are, as far as is known.

    Of cells that were refused no options are known.
    """
    for name, was, now in (("axis", base.axis, new.axis), ("goal", base.goal, new.goal)):
        if was != now:
            return f"{name} {was or 'none'} → {now or 'none'}"
    for digests in ((base.settings, new.settings), (base.defended, new.defended)):
        if all(digests) and digests[0] != digests[1]:
            return "options or problem differ"
    return ""


def honest_changes(base: Honest, new: Honest | None) -> list[Found]:
    """What changed of an honest run besides its utility."""
    if base.status == "missing":
        return []
    if new is None or new.status == "missing":
        return [Found("missing: the new board does not have this honest run")]
    lost = set(base.utility) - set(new.utility)
    fewer = set(base.accuracy) - set(new.accuracy)
    found = [*_fewer(set(base.accuracy), set(new.accuracy)), *_lost(lost - fewer, "utility")]
    if base.status != new.status:
        found.append(_status(base.status, new.status, new.reason))
    # What was not measured promises nothing and costs nothing, and that is told already.
    if base.accuracy and new.accuracy:
        found += [
            *_guarantees(base.guarantees, new.guarantees),
            *_bytes("up", base.bytes_up, new.bytes_up),
            *_bytes("down", base.bytes_down, new.bytes_down),
            *_marks(base.marks, new.marks),
        ]
    return found


def arena_changes(base: Arena, new: Arena | None) -> list[Found]:
    """What changed of a problem; one of which nothing was measured has nothing that could."""
    if not base.dataset:
        return []
    if new is None:
        return [Found("missing: the new board does not have this problem")]
    if not new.dataset:
        return []
    found = [
        Found(f"another problem: {name} {was or 'none'} → {now or 'none'}")
        for name, was, now in (
            ("data set", base.dataset, new.dataset),
            ("measure", base.measure, new.measure),
            ("subset of the data", base.subset, new.subset),
        )
        if was != now
    ]
    if abs(base.chance - new.chance) > ROUNDING:
        found.append(Found(f"another problem: chance {base.chance:g} → {new.chance:g}"))
    if base.told != new.told:
        found.append(Found(f"told in other words: {base.told} → {new.told}", finding=False))
    if base.utility != new.utility:
        found.append(Found(f"its accuracy {'counts' if new.utility else 'does not count'} as utility now"))
    return found


def _guarantees(base: dict[str, float], new: dict[str, float]) -> list[Found]:
    found = []
    for name in sorted({*base, *new}):
        old, now = base.get(name), new.get(name)
        # Another machine's rounding is no other promise.
        if old is None or now is None or not math.isclose(old, now, rel_tol=1e-9):
            found.append(Found(f"another guarantee: {name} {_number(old)} → {_number(now)}"))
    return found


def _bytes(way: str, old: float, now: float) -> list[Found]:
    what = f"bytes {way} per client and round: {old:,.0f} → {now:,.0f}"
    if old > 0 and now == 0:
        return [Found(f"no {what}")]
    if now > old * (1 + MORE_BYTES):
        return [Found(f"more {what}")]
    return [Found(f"fewer {what}", finding=False)] if now < old * (1 - MORE_BYTES) else []


def _marks(base: tuple[str, ...], new: tuple[str, ...]) -> list[Found]:
    """A mark says that a number is not what it seems, as where something was simulated. Its words may be mended."""
    finding = bool(base) != bool(new)
    return [
        *(Found(f"a mark stands beside it now: {mark}", finding) for mark in new if mark not in base),
        *(Found(f"a mark stands beside it no more: {mark}", finding) for mark in base if mark not in new),
    ]


def _there(statuses: dict[int, str]) -> set[int]:
    return {seed for seed, status in statuses.items() if status != "missing"}


def _fewer(base: set[int], new: set[int]) -> list[Found]:
    lost = sorted(base - new)
    if not lost:
        return []
    return [Found(f"fewer seeds: the new board lacks seed{'s' if len(lost) > 1 else ''} {_list(lost)}")]


def _lost(seeds: set[int], what: str) -> list[Found]:
    """Seeds that had a score, and have none in spite of what their status says."""
    if not seeds:
        return []
    return [Found(f"measured nothing: no {what} of seed{'s' if len(seeds) > 1 else ''} {_list(sorted(seeds))}")]


def _moved(base: Cell, new: Cell) -> set[int]:
    """Seeds of whose loss `_fewer` or `_statuses` tells."""
    return {seed for seed in _there(base.statuses) if base.statuses[seed] != new.statuses.get(seed)}


def _untold(base: Cell, new: Cell) -> list[Found]:
    """Options that one board tells of, and the other does not though it ran the cell."""
    found = []
    for name, was, now in (("options", base.settings, new.settings), ("defense", base.defended, new.defended)):
        if was and not now and _ran(new):
            found.append(Found(f"perhaps another experiment: the digest of its {name} is gone"))
        elif now and not was and _ran(base):
            found.append(Found(f"perhaps another experiment: the base has no digest of its {name}", finding=False))
    return found


def _standing(base: Cell, new: Cell) -> list[Found]:
    """What changed of a cell's part in ranks, though not of its score."""
    found = []
    if base.counts != new.counts:
        found.append(Found(f"it counts in {'scores' if new.counts else 'no score'} now"))
    if base.found_by != new.found_by:
        found.append(Found(f"found by {base.found_by or 'nobody else'} → {new.found_by or 'nobody else'}"))
    return found


def _ran(c: Cell) -> bool:
    """Whether any seed was tried, and not refused."""
    return any(status not in ("n/a", "missing") for status in c.statuses.values())


def _statuses(base: Cell, new: Cell) -> list[Found]:
    """Seeds that both have, by what their status was and is."""
    moves: dict[tuple[str, str], list[int]] = {}
    for seed in sorted(_there(base.statuses) & _there(new.statuses)):
        was, now = base.statuses[seed], new.statuses[seed]
        if was != now:
            moves.setdefault((was, now), []).append(seed)
    found = []
    for (was, now), seeds in moves.items():
        scores = [new.scores[s] for s in seeds if s in new.scores]
        one = _status(was, now, new.reason, fmean(scores) if scores else None)
        alone = len(seeds) == len(_there(new.statuses))
        found.append(
            one if alone else Found(f"seed{'s' if len(seeds) > 1 else ''} {_list(seeds)}: {one.words}", one.finding)
        )
    return found


def _status(was: str, now: str, reason: str, score: float | None = None) -> Found:
    why = f" ({reason})" if reason and now != "ok" else ""
    if was in NOT_MEASURED:
        return Found(f"measured now: {was} → {now}{why}", finding=False)
    if was == "n/a" and now == "ok" and score is not None:
        if score < 1:
            return Found(f"something leaks now: n/a → ok with a score of {score:.3f}")
        return Found("the attack can start now and gets nothing: n/a → ok with a score of 1", finding=False)
    if now in ("n/a", *NOT_MEASURED):
        return Found(f"measured nothing: {was} → {now}{why}")
    return Found(f"another outcome: {was} → {now}{why}", finding=now != "ok")


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
