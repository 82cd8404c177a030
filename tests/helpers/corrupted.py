"""What corrupted clients read of digits after rounds that they poisoned."""

from __future__ import annotations

from typing import Any

from fedarena.contracts.curious_poisoning import CuriousPoisoning
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.poisoned_rounds import PoisonedRounds, poisoned_rounds
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

CLIENT = Threat("client", "adaptive")


def finished(defense: str, **schedule: Any) -> FinishedRun:
    """A short training of seven honest clients, two of which may be corrupted in rounds that are attacked."""
    problem = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=7,
        corrupted=2,
        model_options=registry.find("model", "mlp").parse({"widths": "16"}),
        schedule=Schedule(**{"rounds": 4, "batch_size": 1, "lr": 0.05, **schedule}),
    )
    spec = GroupSpec(problem, defense=compose.parse_defense(defense), attack=None, threats=(), seed=0)
    made = build(problem, 0, auxiliary=compose.auxiliary(spec.defense))
    protocol = compose.make_defense(spec.defense, made.task)
    return FinishedRun(spec, made, protocol, federation.run(protocol, made, Rng(0).child("federation"), range(4)))


def poisoned(made: FinishedRun, attack: CuriousPoisoning) -> PoisonedRounds:
    """Its first three rounds, poisoned."""
    run = poisoned_rounds(made, attack, CLIENT, (0, 1, 2))
    assert not isinstance(run, NotApplicable), run.reason
    return run
