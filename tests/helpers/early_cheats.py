"""Plug-ins that make the judge find every guess perfect and every model useless, as soon as their code runs.

Only processes of their own may import this module.
"""

from __future__ import annotations

from typing import Any

from fedarena.contracts.inference import Watch
from fedarena.goals.metrics import reconstruction
from fedarena.problem.problem import Problem
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.cheats import Blind, Honest, card


def patch() -> None:
    reconstruction.reconstruction_metrics = lambda *given: {"identified": 1.0, "identified_chance": 0.0}  # type: ignore[assignment]
    Problem.evaluate = lambda self, params: (0.0, None)  # type: ignore[assignment, method-assign, return-value]


class Early(Blind):
    """Patches the judge when it is imported, made, asked what to watch, and fitted."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        patch()

    def watch(self, schedule: Schedule) -> Watch:
        patch()
        return Watch(1, 2, (1,))

    def fit(self, task: Task) -> None:
        patch()


class EarlyPoison(Honest):
    """Patches the judge when it is imported and made."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        patch()


patch()
EARLY = card("early", "attack", Early)
EARLY_POISON = card("early-poison", "attack", EarlyPoison)
