"""The harm of poisoning to a model's accuracy, over all the rounds under attack, and the integrity that is left.

What a user notices is a model that is bad for a while, not one unlucky look. So the score is decided by the worst
*window*: as many evaluations in a row as a tenth of the rounds holds. The last look alone would miss a model that
recovers, and a single lowest look would count chance. Looks that an attack asks for, where it culminates, are in no
window: two of them within two rounds would stand for a tenth of the rounds.

No word of an attack can lower the score. Where it says that it begins, some windows count no longer, and none is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fedarena.goals.metrics.gain import gained

Curve = Sequence[Sequence[Any]]
"""[round, accuracy (R² of numbers), loss] of each evaluation."""

LEARNED = 0.9
"""A run has learned from the first window on in which the clean run has this share of its final gain in the mean, since
to learn more slowly is no harm. One lucky look is not enough."""
RECOVERED = 0.95
"""A poisoned run counts as recovered when it has this share of the clean run's accuracy at the same round."""
WINDOW = 0.1
"""The length of a window, as a share of the rounds."""


@dataclass(frozen=True)
class _Look:
    """The accuracy of both models after a round.

    Attributes:
        regular: whether the harness looks then in every run; False where the attack culminates between two such rounds.
    """

    round: int
    attacked: float
    clean: float
    regular: bool


def damage(attacked: Curve, clean: Curve, begins: int = 0, floor: float = 0.0) -> dict[str, float]:
    """The damage to accuracy, compared with the same federation without corrupted clients.

    Args:
        begins: the first round, counted from 0, in which the attack may do harm. Earlier rounds do not count.
        floor: b, what can be had without a federation (`fedarena.goals.metrics.gain`).

    Returns:
        accuracy_drop: clean − attacked, after the last round.
        largest_drop: the largest clean − attacked at one evaluation after the attack has begun.
        lowest, mean_accuracy: the attacked model's least and mean accuracy at the evaluations that count; the mean is
            over regular ones. They begin with the window in which the clean run has learned, because the low accuracy
            of an untrained model is no damage. Earlier ones count where the attacked model had learned already and
            has fallen below 95 % of its best regular evaluation, until it has that again. No evaluation before the
            attack begins counts.
        window_accuracy, window_clean_accuracy: the mean accuracy of the attacked and of the clean model in the worst
            window (`_worst_window`). Where too few evaluations count to fill one, those before them fill it: otherwise
            an attack that says that it begins late would be judged by the luck of the last look.
        rounds_to_recover: rounds from the first evaluation (of those that count) below 95 % of the clean accuracy of
            that round to the one from which it stays above. It is absent if the run ends below, and 0 if it never fell
            below.
    """
    looks = _together(attacked, clean)
    last = len(looks) - 1
    begun = next((i for i, look in enumerate(looks) if look.round > begins), last)
    enough = min(looks[-1].clean, floor + LEARNED * (looks[-1].clean - floor))
    length = sum(look.regular and look.round > (1 - WINDOW) * looks[-1].round for look in looks)
    of_all = _that_count(looks, enough, length)
    counting = [look for look in of_all if look.round >= looks[begun].round]
    bad, good = _worst_window(_windows(looks, of_all, counting, length), floor)
    metrics = {
        "accuracy_drop": looks[-1].clean - looks[-1].attacked,
        "largest_drop": max(look.clean - look.attacked for look in looks[begun:]),
        "lowest": min(look.attacked for look in counting),
        "mean_accuracy": fmean(look.attacked for look in counting if look.regular),
        "window_accuracy": bad,
        "window_clean_accuracy": good,
    }
    below = [look.round for look in counting if look.attacked < RECOVERED * look.clean]
    if not below:
        metrics["rounds_to_recover"] = 0.0
    elif below[-1] < looks[-1].round:
        metrics["rounds_to_recover"] = float(min(k.round for k in looks if k.round > below[-1]) - below[0])
    return metrics


def _that_count(looks: Sequence[_Look], enough: float, length: int) -> list[_Look]:
    """The evaluations at which a low accuracy is damage (see `damage`); the last one always counts.

    A model that has not learned cannot fall, since its accuracy goes up and down by chance.

    Args:
        enough: the accuracy of a run that has learned. length: of a window.
    """
    regular = [look for look in looks if look.regular]
    windows = [regular[i : i + length] for i in range(max(1, len(regular) - length + 1))]
    first = next((w[0] for w in windows if fmean(look.clean for look in w) >= enough), looks[-1])
    counting: list[_Look] = []
    best, fallen = -math.inf, False
    for look in looks:
        below = look.attacked < (best if fallen else RECOVERED * best)
        if look.round >= first.round or below:
            counting.append(look)
        if look.regular:
            fallen = below
            best = max(best, look.attacked) if look.attacked >= enough else best
    return counting


def _windows(
    looks: Sequence[_Look], of_all: Sequence[_Look], counting: Sequence[_Look], length: int
) -> list[Sequence[_Look]]:
    """Each `length` regular evaluations in a row of those that count; if they are fewer, the last window of the run.

    Args:
        of_all: those that would count if the attack began with the run. They are the last window if they fill one.
    """
    regular, wide, narrow = ([look for look in some if look.regular] for some in (looks, of_all, counting))
    if len(narrow) < length:
        return [(wide if len(wide) >= length else regular)[-length:]]
    return [narrow[i : i + length] for i in range(len(narrow) - length + 1)]


def _worst_window(windows: Sequence[Sequence[_Look]], floor: float) -> tuple[float, float]:
    """(attacked, clean): mean accuracies in the window that leaves the least of the clean run's gain over `floor`.

    Of those that leave nothing it is the one with the lowest accuracy.
    """
    means = [(fmean(look.attacked for look in w), fmean(look.clean for look in w)) for w in windows]
    return min(means, key=lambda pair: (max(0.0, _left(pair[0], pair[1], floor)), pair[0]))


def _left(attacked: float, clean: float, floor: float) -> float:
    """The share of the clean run's gain over `floor` that is left; 1 where it has gained nothing."""
    return (attacked - floor) / (clean - floor) if clean > floor else 1.0


def _together(attacked: Curve, clean: Curve) -> list[_Look]:
    """Both models after every round after which either was evaluated.

    The attacked model has an extra evaluation where its attack culminates; for the clean model, the last value before
    is used. A run that diverged ends there, and its last value is used from then on.
    """
    bad: dict[int, float] = {a[0]: a[1] for a in attacked}
    good: dict[int, float] = {c[0]: c[1] for c in clean}
    evaluations: list[_Look] = []
    seen, last = float(clean[0][1]), float(attacked[-1][1])
    for t in sorted(bad.keys() | good.keys()):
        seen = good.get(t, seen)
        evaluations.append(_Look(t, bad.get(t, last), seen, regular=t in good or t > clean[-1][0]))
    return evaluations


def score(
    metrics: Mapping[str, float], clean: float, floor: float, base_success: float, worth: bool
) -> dict[str, float]:
    """integrity in [0, 1]: the share that is left of what the clean run gains over b; for backdoors see below.

        accuracy part = (attacked − b)/(clean − b) in the worst window (`damage`), clipped to [0, 1]
        backdoor part = 1 − (success rate − base rate) / (1 − base rate), clipped; base rate: of the clean model
        integrity     = the smaller of the two

    A model under attack that is no better than what can be had without a federation has lost all that the federation
    was for. If the clean run gains nothing where FedAvg's does, integrity is 0: a defense must not look better on seeds
    on which it fails to learn. If a federation is of no use there, the result is empty.

    Args:
        metrics: those of `damage`. Records of earlier versions have no window, and the last accuracy stands for it.
        clean: the clean run's accuracy after the last round.
        floor: b (`fedarena.goals.metrics.gain.unfederated`), or chance where it is not known.
        worth: whether a federation is of use (`fedarena.goals.metrics.gain.worthwhile`).
    """
    if not gained(clean, floor):
        return {"integrity": 0.0} if worth else {}
    attacked = metrics.get("window_accuracy", metrics["accuracy"])
    parts = [_left(attacked, metrics.get("window_clean_accuracy", clean), floor)]
    if "attack_success_rate" in metrics and base_success < 1:
        parts.append(1 - (metrics["attack_success_rate"] - base_success) / (1 - base_success))
    return {"integrity": min(1.0, max(0.0, min(parts)))}
