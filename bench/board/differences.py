"""How far the best defense is ahead of the others, and whether the lead is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.phrases import difference_text, join_and, shortened
from fedarena.board.ranking import RankingRow, Score
from fedarena.core.text.numbers import Mean, mean


def difference(one: Score, other: Score) -> Mean | None:
    """one − other, paired over the seeds that both have, with its 95 % interval; None where they share no seed."""
    shared = sorted(set(one.by_seed) & set(other.by_seed))
    return mean([one.by_seed[s] - other.by_seed[s] for s in shared]) if shared else None


def excludes_zero(interval: Mean | None) -> bool:
    """Whether an interval of differences excludes 0; without an interval nothing can be distinguished."""
    # Differences of some 1e-16 come from adding in another order.
    return interval is not None and interval.half is not None and abs(interval.value) > interval.half + 1e-9


def comparison_with_best(ranked: Sequence[RankingRow]) -> str:
    """Which defenses cannot be distinguished from the best one."""
    best, others = ranked[0], ranked[1:]
    if not others:
        return ""
    differences = {row.defense: difference(best.overall, row.overall) for row in others}
    intervals = {name: mean for name, mean in differences.items() if mean is not None and mean.half is not None}
    if not intervals:
        why = "One seed" if len(best.overall.by_seed) == 1 else "Too few seeds in common"
        return f"{why}: there is no interval, so it is unknown which of these differences are more than chance."
    sentences = _compared(intervals)
    if unknown := [name for name in differences if name not in intervals]:
        sentences.append(f"For {join_and(shortened(unknown))} there are too few seeds in common to say so.")
    return " ".join(sentences)


def _compared(intervals: Mapping[str, Mean]) -> list[str]:
    """Sentences on the others that have an interval: those as good as the best one, and those ahead of it."""
    equal = [f"{name} ({difference_text(m)})" for name, m in intervals.items() if not excludes_zero(m)]
    ahead = [f"{name} ({difference_text(m)})" for name, m in intervals.items() if excludes_zero(m) and m.value < 0]
    seeds = {m.seeds for m in intervals.values()}
    over = f"Over {min(seeds)}{f' to {max(seeds)}' if len(seeds) > 1 else ''} paired seeds"
    sentences = []
    if equal:
        names = join_and(shortened(equal))
        sentences.append(
            f"{over} the 95 % interval of its lead includes 0 for {names}: they cannot be distinguished from it."
        )
    if ahead:
        sentences.append(f"On the seeds that they share, it is behind {join_and(shortened(ahead))}.")
    return sentences or [f"{over} the 95 % interval of its lead excludes 0 for each other ranked defense."]
