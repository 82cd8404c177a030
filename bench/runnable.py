"""Whether a defense and an attack can be run on a problem at all, found out before anything is trained."""

from __future__ import annotations

from fedarena import compose, goals
from fedarena.adversary import ground_of, require_corrupted
from fedarena.defense import Defense
from fedarena.poisoning import Poisoning
from fedarena.problem import Problem, ProblemSpec
from fedarena.spec import MethodSpec


def require_runnable(spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
    """Raise UserError for an attack that refuses the problem or the protocol.

    Args:
        problem, protocol: built from `spec` and made for it; a defense that refuses it raises while it is made.
    """
    made = compose.attack_class(attack)
    if issubclass(made, Poisoning):
        require_corrupted(spec.corrupted, attack.label)
        compose.make_poisoning(attack, ground_of(problem, protocol, "own"))
        return
    reading = made(attack.options)
    reading.watch(spec.schedule)
    goals.find(reading.goal).refuse(problem, reading)
    reading.fit(problem.task)
