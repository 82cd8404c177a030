"""Metrics of a poisoned run: the quality of the model, and whose uploads the server used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from fedarena.core.binomial import share_ends
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable

if TYPE_CHECKING:
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.federation.one_round import Verdict
    from fedarena.problem.problem import Problem

Curve = Sequence[Sequence[Any]]
"""[round, accuracy (R² of numbers), loss] of each evaluation."""

LEARNED = 0.9
"""A run has learned from the evaluation on at which it first has this share of the clean run's final accuracy."""
RECOVERED = 0.95
"""A poisoned run counts as recovered when it has this share of the clean run's accuracy at the same round."""

ABOVE_CHANCE = 0.05
"""A clean run counts as learned if its accuracy exceeds chance by at least this."""


@torch.no_grad()
def success_rate(attack: Poisoning, problem: Problem, params: Tensors) -> dict[str, float]:
    """`attack_success_rate`: the share of held-out inputs of other classes that the trigger turns into the target.

    Its 95 % interval over inputs stands beside it as NAME_low and NAME_high (`fedarena.core.binomial`).
    Empty for attacks without a trigger, and where no held-out input is of another class (`without_other_classes`).
    """
    right = total = 0
    for x, y in zip(problem.x_test.split(1000), problem.y_test.split(1000), strict=True):
        with_trigger = attack.trigger(x.float() / problem.scale)
        if with_trigger is None:
            return {}
        triggered, target = with_trigger
        others = y != target
        predicted = problem.task.criterion.classes(problem.task.outputs(params, triggered[others]))
        right += int((predicted == target).sum())
        total += int(others.sum())
    if not total:
        return {}
    rate = right / total
    return {"attack_success_rate": rate, **share_ends("attack_success_rate", rate, total)}


def without_other_classes(attack: Poisoning, problem: Problem) -> NotApplicable | None:
    """Why a backdoor cannot be judged: every held-out sample is of its target's class. None if it can be."""
    with_trigger = attack.trigger(problem.x_test[:1].float() / problem.scale)
    if with_trigger is None or bool((problem.y_test != with_trigger[1]).any()):
        return None
    return NotApplicable(f"all held-out samples are of the target's class {with_trigger[1]}: none shows the backdoor")


def shares(verdicts: Sequence[Verdict], corrupted: frozenset[int]) -> list[dict[str, float]]:
    """How the server treated corrupted and honest uploads, round by round.

    Returns, for each round:
        corrupted_weight: the corrupted clients' share of the aggregate's weights, Σ_corrupted used / Σ used (for
        rules that select, the share of the selected that is corrupted); honest_rejected and corrupted_rejected:
        shares of each with weight 0; and for every further name a protocol's own value, as honest_NAME and
        corrupted_NAME. Rules without weights give none.
    """
    return [_split(v, corrupted) for v in verdicts]


def means_over_rounds(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each of `shares` over the rounds that have it."""
    return {name: fmean(r[name] for r in rounds if name in r) for name in _names(rounds)}


def by_round(rounds: Sequence[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """Each of `shares` as a curve, rounded to four digits; None for a round without a finite value."""
    curves = {name: [r.get(name, math.nan) for r in rounds] for name in _names(rounds)}
    return {name: [round(v, 4) if math.isfinite(v) else None for v in values] for name, values in curves.items()}


def _names(rounds: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for r in rounds for name in r))


def _split(verdict: Verdict, corrupted: frozenset[int]) -> dict[str, float]:
    bad = [i for i, c in enumerate(verdict.clients) if c in corrupted]
    good = [i for i, c in enumerate(verdict.clients) if c not in corrupted]
    treatment: dict[str, float] = {}
    for name, values in verdict.values.items():
        if name == "used":
            total = sum(values)
            if total > 0:
                treatment["corrupted_weight"] = sum(values[i] for i in bad) / total
            name, values = "rejected", tuple(float(v == 0) for v in values)
        for who, members in (("honest", good), ("corrupted", bad)):
            if members:
                treatment[f"{who}_{name}"] = fmean(values[i] for i in members)
    return treatment


def damage(attacked: Curve, clean: Curve, begins: int = 0) -> dict[str, float]:
    """The damage to accuracy, compared with the same federation without corrupted clients.

    Args:
        begins: the first round, counted from 0, in which the attack may do harm. Earlier rounds do not count.

    Returns:
        accuracy_drop: clean − attacked, after the last round.
        largest_drop: the largest clean − attacked at one evaluation after the attack has begun.
        lowest: the attacked model's least accuracy at the evaluations that count. These begin with the one at which
            the clean run has learned, because the low accuracy of an untrained model is no damage. Earlier ones count
            if the attacked model has fallen below 95 % of its accuracy when the attack began, or of its best if it had
            learned. No evaluation before the attack begins counts.
        rounds_to_recover: rounds from the first evaluation (of those that count) below 95 % of the clean accuracy of
            that round to the one from which it stays above. It is absent if the run ends below, and 0 if it never fell
            below.
    """
    looks = _together(attacked, clean)
    last = len(looks) - 1
    begun = next((i for i, (t, _, _) in enumerate(looks) if t > begins), last)
    enough = LEARNED * looks[-1][2]
    learned_by = next((i for i, (_, _, c) in enumerate(looks) if c >= enough), last)
    before = looks[begun - 1][1] if begun else -math.inf
    best = [-math.inf, *accumulate((a for _, a, _ in looks), max)]  # until then
    had = [max(before, b if b >= enough else -math.inf) for b in best]
    counts = [i for i in range(begun, last + 1) if i >= learned_by or looks[i][1] < RECOVERED * had[i]]
    metrics = {
        "accuracy_drop": looks[-1][2] - looks[-1][1],
        "largest_drop": max(c - a for _, a, c in looks[begun:]),
        "lowest": min(looks[i][1] for i in counts),
    }
    below = [i for i in counts if looks[i][1] < RECOVERED * looks[i][2]]
    if not below:
        metrics["rounds_to_recover"] = 0.0
    elif below[-1] < last:
        metrics["rounds_to_recover"] = float(looks[below[-1] + 1][0] - looks[below[0]][0])
    return metrics


def _together(attacked: Curve, clean: Curve) -> list[tuple[int, float, float]]:
    """(round, attacked accuracy, clean accuracy) of every round after which either model was evaluated.

    The attacked model has an extra evaluation where its attack culminates; for the clean model, the last value before
    is used. A run that diverged ends there, and its last value is used from then on.
    """
    bad: dict[int, float] = {a[0]: a[1] for a in attacked}
    good: dict[int, float] = {c[0]: c[1] for c in clean}
    evaluations: list[tuple[int, float, float]] = []
    seen, last = float(clean[0][1]), float(attacked[-1][1])
    for t in sorted(bad.keys() | good.keys()):
        seen = good.get(t, seen)
        evaluations.append((t, bad.get(t, last), seen))
    return evaluations


def learned(clean: float, chance: float) -> bool:
    """Whether a clean run has learned anything that an attack could break: accuracies nearer to chance are noise."""
    return clean - chance >= ABOVE_CHANCE


def score(
    metrics: Mapping[str, float], clean: float, chance: float, base_success: float, plain: float | None
) -> dict[str, float]:
    """integrity in [0, 1]: the share that is left of the clean run's gain over chance; for backdoors see below.

        accuracy part = (accuracy under attack − chance) / (clean accuracy − chance), clipped to [0, 1]
        backdoor part = 1 − (success rate − base rate) / (1 − base rate), clipped; base rate: of the clean model
        integrity     = the smaller of the two

    If the clean run has not `learned` and FedAvg's has, integrity is 0: a defense must not look better on seeds on
    which it fails to learn. If FedAvg's has not learned either, or is not known, the result is empty.

    Args:
        plain: FedAvg's accuracy without corrupted clients.
    """
    if not learned(clean, chance):
        return {"integrity": 0.0} if plain is not None and learned(plain, chance) else {}
    parts = [(metrics["accuracy"] - chance) / (clean - chance)]
    if "attack_success_rate" in metrics and base_success < 1:
        parts.append(1 - (metrics["attack_success_rate"] - base_success) / (1 - base_success))
    return {"integrity": min(1.0, max(0.0, min(parts)))}
