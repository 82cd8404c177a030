"""Checks before training: can the attack run on the problem, and do the uploads fit into the secure sum?"""

from __future__ import annotations

import math
from dataclasses import replace

from fedarena import goals
from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import Poisoning
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.federation import compose, rounds
from fedarena.federation.adversary import knowledge_of, require_corrupted
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem
from fedarena.problem.spec import ProblemSpec


def require_runnable(spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
    """Raise UserError for an attack that refuses the problem or the protocol.

    Args:
        problem, protocol: built from `spec` and made for it; a defense that refuses it raises while it is made.
    """
    made = compose.attack_class(attack)
    if issubclass(made, Poisoning):
        require_corrupted(spec.corrupted, attack.label)
        compose.make_poisoning(attack, knowledge_of(problem, protocol, "own"))
        return
    reading = made(attack.options)
    reading.watch(spec.schedule)
    goals.find(reading.goal).refuse(problem, reading)
    reading.fit(problem.task)


def require_summable(defense: Defense, problem: Problem, seed: int) -> None:
    """Raise UserError where the uploads of the first round cannot be summed as the options of the secure sum say.

    It is the very round that a run with this seed begins with when everybody is honest. Nothing is played where there
    is nothing to refuse: without a secure sum, or with one that takes vectors of any size and any length.
    """
    secure = defense.secure
    if secure is None or (secure.repeat == 1 and math.isinf(secure.limit)):
        return
    one = replace(problem.task.schedule, rounds=1, eval_every=0)
    brief = replace(problem, task=replace(problem.task, schedule=one))
    try:
        played = rounds.run(defense, brief, Rng(seed).child("federation"), watch=(0,)).rounds
    except UserError:
        raise
    except Exception:  # a method's own mistake, which the run itself will make a record of
        return
    for r in played:  # none, where too few clients were left
        shares = weights(problem.task.sizes, r.participants).to(problem.device)
        secure.require_room(rows(r.ups) * (shares / shares.sum())[:, None])
