"""What is compared without a test: what is missing, whose status changed, what is promised, what crosses the wire."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from fedarena.board.board import Cell, Honest

MORE_BYTES = 0.01
"""More bytes on the wire by this share is a finding."""

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
    if another_experiment(base, new):
        return [Found("another experiment: options or problem differ, so that its score is not compared")]
    found = [*_fewer(_there(base.statuses), _there(new.statuses)), *_statuses(base, new)]
    if base.status == new.status == "failed":
        found.append(Found("failed on both boards", finding=False))
    if base.versions and new.versions and base.versions != new.versions:
        names = [n for n in sorted({*base.versions, *new.versions}) if base.versions.get(n) != new.versions.get(n)]
        told = ", ".join(f"{n} {base.versions.get(n, '-')} → {new.versions.get(n, '-')}" for n in names)
        found.append(Found(f"versions of methods: {told}", finding=False))
    return found


def another_experiment(base: Cell, new: Cell) -> bool:
    """Whether options or problem differ, as far as they are known: of cells that were refused they are not."""
    return bool(base.settings and new.settings) and base.settings != new.settings


def honest_changes(base: Honest, new: Honest | None) -> list[Found]:
    """What changed of an honest run besides its utility."""
    if base.status == "missing":
        return []
    if new is None or new.status == "missing":
        return [Found("missing: the new board does not have this honest run")]
    found = _fewer(set(base.accuracy), set(new.accuracy))
    if base.status != new.status:
        found.append(_status(base.status, new.status, new.reason))
    for name in sorted({*base.guarantees, *new.guarantees}):
        old, now = base.guarantees.get(name), new.guarantees.get(name)
        # Another machine's rounding is no other promise.
        if old is None or now is None or not math.isclose(old, now, rel_tol=1e-9):
            found.append(Found(f"another guarantee: {name} {_number(old)} → {_number(now)}"))
    for way, old, now in (("up", base.bytes_up, new.bytes_up), ("down", base.bytes_down, new.bytes_down)):
        if now > old * (1 + MORE_BYTES):
            found.append(Found(f"more bytes {way} per client and round: {old:,.0f} → {now:,.0f}"))
        elif now < old * (1 - MORE_BYTES):
            found.append(Found(f"fewer bytes {way} per client and round: {old:,.0f} → {now:,.0f}", finding=False))
    return found


def _there(statuses: dict[int, str]) -> set[int]:
    return {seed for seed, status in statuses.items() if status != "missing"}


def _fewer(base: set[int], new: set[int]) -> list[Found]:
    lost = sorted(base - new)
    if not lost:
        return []
    return [Found(f"fewer seeds: the new board lacks seed{'s' if len(lost) > 1 else ''} {_list(lost)}")]


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
