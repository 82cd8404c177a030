"""The inputs on which an attack's backdoor is judged."""

from __future__ import annotations

from fedarena.contracts.defense import Defense
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of
from fedarena.federation.spec import MethodSpec
from fedarena.federation.triggered_inputs import TriggeredInputs, triggered_inputs
from fedarena.problem.problem import Problem


def inputs_of(attack: MethodSpec, problem: Problem, defense: Defense) -> TriggeredInputs | None:
    """The inputs with the attack's trigger; None if it has none.

    They are made by an attack as given, not tuned, that knows what corrupted clients hold, and takes no part in a run.
    So they are the same for a run with the attack and for the one without it. Raises UserError, ValueError.
    """
    if compose.trigger_of(attack) is None:
        return None
    return triggered_inputs(compose.make_poisoning(attack, knowledge_of(problem, defense, "own")), problem)
