"""Models that overfit few digits, to be attacked."""

from __future__ import annotations

from functools import cache
from typing import Any

from fedarena.core import registry
from fedarena.core.threat import Form, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.goals.prepared import PreparedRecord
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import trial


def group(
    defense: str = "fedavg", options: tuple[tuple[str, str], ...] = (), party: Party = "server", form: Form = "paper",
    seed: int = 0, samples: int = 50, rounds: int = 200, loss: str = "cross-entropy", partition: str = "few",
    **attack: str,
) -> GroupSpec:  # fmt: skip
    """Four clients; three shadows unless told otherwise."""
    model = registry.find("model", "mlp").parse({"widths": "32"})
    division = registry.find("partition", partition).parse({"samples": str(samples)} if partition == "few" else {})
    schedule = Schedule(rounds=rounds, batch_size=16, loss=loss)
    lira = {} if attack.get("statistic") == "loss" else {"shadows": "3"}
    return GroupSpec(
        ProblemSpec(
            "digits",
            model="mlp",
            partition=partition,
            clients=4,
            model_options=model,
            partition_options=division,
            schedule=schedule,
        ),
        defense=compose.parse_defense(defense, dict(options)),
        attack=compose.parse_attack("membership-inference", lira | attack),
        threats=(Threat(party, form),),
        seed=seed,
    )


def prepared(spec: GroupSpec) -> list[PreparedRecord]:
    return trial.prepare(spec)


@cache
def attacked(**settings: Any) -> dict[str, Any]:
    """The record of one cell, measured once."""
    (cell,) = prepared(group(**settings))
    return trial.attack(cell)[0]
