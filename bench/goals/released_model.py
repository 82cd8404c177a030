"""The model that each party has after the training.

    server         what it deploys (`Defense.deployed`), in clear
    client         what it is given (`Defense.release`), in clear
    eavesdropper   the same, since it crosses the wire
    outsider       answers of the model that clients are given, to its queries

None of these depends on the form of an attack: nothing hides a model that is released. What a protocol hides while it
trains is a matter of extraction (`fedarena.goals.extraction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedarena.contracts.final_model import BlackBox, Predictor, WhiteBox
from fedarena.core.tensors import finite
from fedarena.core.threat import NotApplicable, Threat

if TYPE_CHECKING:
    from fedarena.federation.finished_run import FinishedRun


@dataclass(frozen=True)
class Held:
    """A model that a party holds, and the name of its reading."""

    reading: str
    model: Predictor


def model_of(finished: FinishedRun, threat: Threat) -> Held | NotApplicable:
    """The model that a party has after the last round; not applicable if it is not finite."""
    task, run = finished.problem.task, finished.run
    if not finite(run.params if threat.party == "server" else run.release):
        return NotApplicable("the training ended with a model that is not finite")
    if threat.party == "server":
        return Held("deployed", WhiteBox(task, run.params))
    if threat.party == "outsider":
        return Held("queries", BlackBox(task, run.release))
    return Held("release", WhiteBox(task, run.release))
