"""Small federations without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fedarena.contracts.peers import Peers
from fedarena.contracts.transcript import Seen, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Form, Party, Threat
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def nodes(clients: int = 6, model: str = "mlp", corrupted: int = 0, **schedule: Any) -> Problem:
    """Nodes with shards of digits."""
    card = registry.find("model", model)
    made = Schedule(**{"rounds": 3, "batch_size": 4, "lr": 0.5, **schedule})
    options = card.parse({"widths": "8"} if model == "mlp" else {})
    spec = ProblemSpec(
        "digits",
        model=model,
        partition="iid",
        clients=clients,
        corrupted=corrupted,
        model_options=options,
        schedule=made,
    )
    return build(spec, 0)


def peers(problem: Problem, name: str = "d-sgd", **options: Any) -> Peers:
    """A protocol on the nodes of a problem; `name` may have a rule."""
    method = parse_defense(name)
    made = make_defense(replace(method, options=registry.find("defense", method.name).options(**options)), problem.task)
    assert isinstance(made, Peers)
    return made


def trained(problem: Problem, protocol: Any, **more: Any) -> federation.Run:
    """A run whose rounds are all written down."""
    rounds = range(problem.task.schedule.rounds)
    return federation.run(protocol, problem, Rng(0).child("federation"), watch=rounds, **more)


def views(run: federation.Run, party: Party = "client", form: Form = "adaptive") -> tuple[Threat, dict[int, Seen]]:
    """A party, and what it saw."""
    threat = Threat(party, form)
    return threat, cut(run.rounds, threat)
