"""What the federation tells of a poisoned run: whose uploads the server used, and how often a trigger works.

`fedarena.goals.metrics.harm` judges the accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import torch

from fedarena.core.binomial import share_ends
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable

if TYPE_CHECKING:
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.federation.one_round import Verdict
    from fedarena.problem.problem import Problem


@torch.no_grad()
def success_rate(attack: Poisoning, problem: Problem, params: Tensors) -> dict[str, float]:
    """`attack_success_rate`: the share of held-out inputs of other classes that the trigger turns into the target.

    Where the attack is `meant_for` some of these inputs alone, the share of those.

    Its 95 % interval over inputs stands beside it as NAME_low and NAME_high (`fedarena.core.binomial`).
    Empty for attacks without a trigger, and where no held-out input shows the backdoor (`without_other_classes`).
    """
    right = total = 0
    for x, y in zip(problem.x_test.split(1000), problem.y_test.split(1000), strict=True):
        with_trigger = attack.trigger(x.float() / problem.scale)
        if with_trigger is None:
            return {}
        triggered, target = with_trigger
        others = attack.meant_for(x.float() / problem.scale, y)
        predicted = problem.task.criterion.classes(problem.task.outputs(params, triggered[others]))
        right += int((predicted == target).sum())
        total += int(others.sum())
    if not total:
        return {}
    rate = right / total
    return {"attack_success_rate": rate, **share_ends("attack_success_rate", rate, total)}


def without_other_classes(attack: Poisoning, problem: Problem) -> NotApplicable | None:
    """Why a backdoor cannot be judged: no held-out sample is one that its success is counted on. None if it can be."""
    with_trigger = attack.trigger(problem.x_test[:1].float() / problem.scale)
    if with_trigger is None:
        return None
    if not bool((problem.y_test != with_trigger[1]).any()):
        text = f"all held-out samples are of the target's class {with_trigger[1]}: none shows the backdoor"
        return NotApplicable(text)
    for x, y in zip(problem.x_test.split(1000), problem.y_test.split(1000), strict=True):
        if bool(attack.meant_for(x.float() / problem.scale, y).any()):
            return None
    return NotApplicable("the backdoor is meant for none of the held-out samples")


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
