"""A small problem that inference attacks read."""

from __future__ import annotations

from typing import Any

from fedarena.core import registry
from fedarena.federation import compose
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def attacked(model: str = "lenet-dlg", model_options: Any = None, **schedule: Any) -> ProblemSpec:
    """Digits and two clients, eight rounds unless the schedule says more."""
    options = model_options or registry.find("model", model).parse({})
    return ProblemSpec(
        "digits",
        model=model,
        partition="iid",
        clients=2,
        model_options=options,
        schedule=Schedule(**{"rounds": 8, **schedule}),
    )


def asked_of_model(defense: str) -> dict[str, str]:
    """The options of the dense network that a defense cannot do without, beside its widths."""
    usual = dict(compose.defense_cards(defense)[0].usual)
    asked = {k.removeprefix("model."): v for k, v in usual.items() if k.startswith("model.")}
    return {k: v for k, v in asked.items() if k != "widths"}
