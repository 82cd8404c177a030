"""A difference between two boards that is not a test of scores."""

from __future__ import annotations

from dataclasses import dataclass

NOT_MEASURED = ("failed", "missing")
"""Statuses without a measurement. n/a is a result: the attack had nothing to start from."""


@dataclass(frozen=True)
class Change:
    """A difference in words.

    Attributes:
        words: the difference.
        finding: whether a person must look at it; otherwise it is only reported.
    """

    words: str
    finding: bool = True


def fewer_seeds(base: set[int], new: set[int]) -> list[Change]:
    """Seeds that only the base board has."""
    lost = base - new
    return [Change(f"fewer seeds: the new board lacks {seeds_text(lost)}")] if lost else []


def lost_scores(seeds: set[int], what: str) -> list[Change]:
    """Seeds that lost their score although their status does not explain it."""
    return [Change(f"measured nothing: no {what} of {seeds_text(seeds)}")] if seeds else []


def status_change(was: str, now: str, reason: str, score: float | None = None) -> Change:
    """The change from one status to another.

    Args:
        reason: why the new status is not ok.
        score: the new mean score, where there is one.
    """
    why = f" ({reason})" if reason and now != "ok" else ""
    if was in NOT_MEASURED:
        return Change(f"measured now: {was} → {now}{why}", finding=False)
    if was == "n/a" and now == "ok" and score is not None:
        if score < 1:
            return Change(f"something leaks now: n/a → ok with a score of {score:.3f}")
        return Change("the attack can start now and gets nothing: n/a → ok with a score of 1", finding=False)
    if now in ("n/a", *NOT_MEASURED):
        return Change(f"measured nothing: {was} → {now}{why}")
    return Change(f"another outcome: {was} → {now}{why}", finding=now != "ok")


def seeds_text(seeds: set[int]) -> str:
    """ "seed 1" or "seeds 0, 2"."""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, sorted(seeds)))}"
