"""The model that each party has after the training. The protocol says which one (`Defense.final_model`):

    server         what it deploys (`Defense.deployed`), in clear
    client         what it is given (`Defense.release`), in clear; without a server its own
    eavesdropper   what a client is given, since it crosses the wire; without a server nothing
    outsider       answers of the model that clients are given, to its queries; without a server nothing

None of these depends on the form of an attack: nothing hides a model that is released. What a protocol hides while it
trains is a matter of extraction (`fedarena.goals.extraction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedarena.contracts.final_model import FINAL_MODEL_MEANING, BlackBox, FinalModel, Predictor, WhiteBox
from fedarena.core.tensors import Tensors, finite
from fedarena.core.threat import NotApplicable, Threat

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun


@dataclass(frozen=True)
class Held:
    """A model that a party holds, the name of its reading, and its parameters, which the party need not know."""

    reading: FinalModel
    model: Predictor
    params: Tensors


def model_of(finished: FinishedRun, threat: Threat) -> Held | NotApplicable:
    """The model that a party has after the last round; not applicable if it has none or one that is not finite."""
    which = finished.defense.final_model(threat)
    if isinstance(which, NotApplicable):
        return which
    task, run = finished.problem.task, finished.run
    params = run.params if which == "deployed" else run.release
    if not finite(params):
        return NotApplicable("the training ended with a model that is not finite")
    return Held(which, BlackBox(task, params) if which == "queries" else WhiteBox(task, params), params)


def model_in_words(defense: Defense, threat: Threat) -> str | NotApplicable:
    """Which model a party has after the last round, or why it has none."""
    which = defense.final_model(threat)
    return which if isinstance(which, NotApplicable) else FINAL_MODEL_MEANING[which]
