"""How scores, worst cases, costs and counts are written."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.board.board import STATUSES
from fedarena.board.ranking import RankingRow, Score
from fedarena.core.text.numbers import Mean, share
from fedarena.goals.metrics.gain import LEAST_GAIN
from fedarena.goals.metrics.harm import WINDOW

NOTHING = "–"
"""What stands where there is no number."""

DAGGER = "†"
"""The sign beside defenses and cells that have a warning."""

HOW = (
    "Every score is in [0, 1], and higher is better for the defender. Utility and integrity begin at b, the best "
    "accuracy that can be had without a federation: that of a constant answer, of clients that train alone (mean), or "
    "of the defense's server if it holds samples and trains on them alone. Utility is (accuracy − b)/(FedAvg's "
    "accuracy − b), and 0 for a model that diverged. Integrity is the worst case over poisoning attacks of (accuracy "
    f"under attack − b)/(clean accuracy − b) in the worst window of {100 * WINDOW:g} % of the rounds. Privacy is the "
    "worst case over inference attacks on clients' data of 1 − the attacker's advantage over guessing. On a seed on "
    f"which the defense gains nothing without poisoning (less than {LEAST_GAIN:g} above b), its integrity is 0 if "
    "FedAvg gains something, and there is none if FedAvg does not. "
    "A cell does not count if the model that is attacked is hardly better than a constant answer, if the defense lets "
    "parties read nothing of messages that leak, or if its attack could have been tuned and was not.",
    "A defense is ranked by the lowest of the scores that count, so that it cannot lead by two while it gives away the "
    "third. Among scores that are equal to three digits the next lowest decides, then fewer bytes, then less "
    "time. The mean is over seeds that have all scores. With --weights a weighted mean decides "
    "instead.",
    "A rank such as 1–3 is a range: the intervals leave open which of these ranks the defense has. It begins below all "
    "defenses whose intervals lie wholly above its own, and ends above all whose intervals lie wholly below. Lines "
    "stand in the order of the scores themselves. Without intervals, on one seed, only equal scores share a range.",
    "The worst case is the cell with the lowest mean over seeds, in paper or adaptive form. Intervals are 95 %, over "
    "seeds (Student's t; an interval that leaves [0, 1] is cut and given by its ends). That of a worst case "
    "allows for the choice of the cell, and is the interval of the lowest true mean. Its lower end is the least of the "
    "cells' lower ends. Its upper end is the least of their upper ends, which hold for all cells at once (Bonferroni). "
    "The interval of the lowest score is made in the same way, of all cells that count and of utility. "
    "Those of means take the worst cells as given. Columns in paper form use attacks only as "
    "their papers tried them. Plain FedAvg has no paper that an attack could adapt to: it meets each attack in "
    "one form, which counts in both.",
    "n/a is an attack that could not start, which counts as withstood unless a control reading of the same messages "
    "leaks. A defense has no rank if it failed at an "
    "attack, or did not meet one that another defense met.",
)
"""How the scores are computed."""


def interval(m: Mean | None) -> str:
    """A share with its interval, where there is one."""
    return NOTHING if m is None else share(m)


def score(s: Score) -> str:
    """A score with its interval; n/a where no attack could start."""
    return "n/a" if s.untouched else interval(s.value)


def rank(row: RankingRow) -> str:
    """A rank or a range of ranks; a dash where there is none."""
    return NOTHING if row.rank is None else row.rank.text


def average(s: Score) -> str:
    """The mean over all cells, which stands beside a worst case."""
    return NOTHING if s.average is None else f"{s.average:.2f}"


def worst_case(s: Score, several_problems: bool) -> str:
    """The cell of a worst case: attack, attacker, form, and the problem where the board has several."""
    if s.worst is None:
        return "no attack could start" if s.untouched else NOTHING
    by = f", found by {s.worst.found_by}" if s.worst.found_by else ""
    return f"{s.worst.attack}: {s.worst.threat}{f', on {s.worst.problem}' if several_problems else ''}{by}"


def times(x: float | None) -> str:
    """A cost relative to FedAvg's: "1.50 ×"."""
    return NOTHING if x is None else f"{x:.2f} ×"


def counts(by_status: Mapping[str, int]) -> str:
    """ "12 ok, 3 n/a"."""
    order = (*STATUSES, *sorted(set(by_status) - set(STATUSES)))
    return ", ".join(f"{by_status[name]} {name}" for name in order if by_status.get(name)) or "none"


def defense_name(row: RankingRow) -> str:
    """A defense's name, with the dagger where it has warnings."""
    return f"{row.defense} {DAGGER}" if row.warnings else row.defense
