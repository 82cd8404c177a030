"""How far the best defense is ahead of the others, and whether the lead is more than chance."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.phrases import join_and, shortened
from fedarena.board.rank_range import wholly_above
from fedarena.board.ranking import RankingRow, Score
from fedarena.core.text.numbers import Mean, mean


def difference(one: Score, other: Score) -> Mean | None:
    """one − other, paired over the seeds that both have, with its 95 % interval; None where they share no seed."""
    shared = sorted(set(one.by_seed) & set(other.by_seed))
    return mean([one.by_seed[s] - other.by_seed[s] for s in shared]) if shared else None


def comparison_with_best(ranked: Sequence[RankingRow]) -> str:
    """Which defenses cannot be distinguished from the best one, by the intervals that make the ranks ranges."""
    best, others = ranked[0], ranked[1:]
    if not others:
        return ""
    lead = best.deciding.value
    if lead is None or lead.interval is None:
        return f"{best.defense} has no interval, so it is unknown which of these differences are more than chance."
    values = {row.defense: row.deciding.value for row in others}
    equal = [name for name, value in values.items() if value is not None and not wholly_above(lead, value)]
    if not equal:
        return f"The interval of {best.defense} lies wholly above that of each other ranked defense."
    return f"The intervals do not separate {best.defense} from {join_and(shortened(equal))}."
