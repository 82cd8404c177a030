"""Goals: what attacks are after, one a file. `find` gives the goal that an attack names (`Inference.goal`)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fedarena.core.card import import_target

if TYPE_CHECKING:
    from fedarena.goals.goal import Goal

GOALS = {
    "reconstruction": "fedarena.goals.reconstruction:Reconstructions",
    "membership": "fedarena.goals.membership:BatchMembership",
    "labels": "fedarena.goals.labels:BatchLabels",
    "extraction": "fedarena.goals.extraction:ModelExtraction",
    "estimate": "fedarena.goals.estimate:Estimates",
    "property": "fedarena.goals.property:PropertyOfBatch",
    "training-membership": "fedarena.goals.training_membership:TrainingMembership",
    "inversion": "fedarena.goals.inversion:Inversion",
}
"""Name → "module:class"; a goal is imported on first use."""


@cache
def find(name: str) -> Goal:
    """The goal of that name.

    Raises:
        KeyError: there is none.
    """
    made: Goal = import_target(GOALS[name], f"goal '{name}'")()
    return made
