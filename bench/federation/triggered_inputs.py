"""Backdoors: held-out inputs with a trigger, and how often they become the target.

The inputs are made once, before a run, by an attack that takes no part in it. So both models, the attacked one and the
one without an attack, are shown the same inputs, whatever the attack does in the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.contracts.poisoning import Poisoning
from fedarena.core.binomial import share_ends
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.problem import Problem

PART = 1000
"""Held-out inputs that are given to the attack, or to a model, at once."""


@dataclass(frozen=True)
class TriggeredInputs:
    """What the success of a backdoor is counted on.

    Attributes:
        x: inputs with the trigger [n, *input_shape], in [0, 1]. target: the class that they are to become.
        others: whether any held-out sample is of another class.
    """

    x: Tensor
    target: int
    others: bool


@torch.no_grad()
def triggered_inputs(attack: Poisoning, problem: Problem) -> TriggeredInputs | None:
    """The held-out inputs of other classes that the attack is `meant_for`, with its trigger; None if it has none.

    Raises:
        ValueError: the attack gives inputs of another shape, another target for other inputs, or no mask.
    """
    inputs, targets = [], set()
    for stored, y in zip(problem.x_test.split(PART), problem.y_test.split(PART), strict=True):
        x = stored.float() / problem.scale
        with_trigger = attack.trigger(x)
        if with_trigger is None:
            return None
        triggered, target = with_trigger
        meant = attack.meant_for(x, y)
        if triggered.shape != x.shape or meant.shape != y.shape or meant.dtype != torch.bool:
            raise ValueError(
                f"the trigger gave inputs {list(triggered.shape)} and a mask {list(meant.shape)} of {meant.dtype} for "
                f"inputs {list(x.shape)}"
            )
        inputs.append(triggered[meant & (y != target)].to(x).clamp(0, 1))
        targets.add(target)
    if len(targets) != 1:
        raise ValueError(f"the trigger has the targets {sorted(targets)}, allowed: one")
    (target,) = targets
    return TriggeredInputs(torch.cat(inputs), target, bool((problem.y_test != target).any()))


@torch.no_grad()
def success_rate(triggered: TriggeredInputs | None, problem: Problem, models: Sequence[Tensors]) -> dict[str, float]:
    """`attack_success_rate`: the share of the inputs that the trigger turns into the target, the mean over models.

    Its 95 % interval over inputs stands beside it as NAME_low and NAME_high (`fedarena.core.binomial`).
    Empty for attacks without a trigger, and without inputs (`why_not_judged`).
    """
    if triggered is None or not len(triggered.x):
        return {}
    criterion, task, inputs = problem.task.criterion, problem.task, triggered.x.split(PART)
    predicted = torch.cat([criterion.classes(task.outputs(params, x)) for params in models for x in inputs])
    rate = int((predicted == triggered.target).sum()) / len(predicted)
    return {"attack_success_rate": rate, **share_ends("attack_success_rate", rate, len(triggered.x))}


def why_not_judged(triggered: TriggeredInputs | None) -> NotApplicable | None:
    """Why a backdoor cannot be judged: no held-out sample is one that its success is counted on. None if it can be."""
    if triggered is None or len(triggered.x):
        return None
    if not triggered.others:
        text = f"all held-out samples are of the target's class {triggered.target}: none shows the backdoor"
        return NotApplicable(text)
    return NotApplicable("the backdoor is meant for none of the held-out samples")
