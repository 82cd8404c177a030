"""Views: all that an attack ever gets.

The harness filters the transcript by what the party can see (`fedarena.core.threat.VISIBILITY`), and the defense turns
the rest into observations. The result is handed over in serialised form, so that an attack holds copies of the view's
fields and no reference into the run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Generator, Tensor, nn

from fedarena.contracts.defense import Defense
from fedarena.contracts.final_model import Predictor
from fedarena.contracts.observation import Candidates, Disclosure, Observation
from fedarena.core.compact_pickle import dumps
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat
from fedarena.problem.loss import Criterion
from fedarena.problem.task import Batch

InitialDistribution = Callable[[nn.Module, Generator], Tensors]
"""Draws a module's initial parameters; a picklable object, such as `fedarena.models.architecture.Architecture.init` of
an instance."""


@dataclass(frozen=True)
class Population:
    """Samples that an attacker has collected.

    Attributes:
        x: inputs [n, *input_shape] in [0, 1].
        y: classes [n] (int64), or numbers [n].
        attributes: what else is known of them, by name: [n] (int8), 1 has it, 0 has it not, −1 unknown.
    """

    x: Tensor
    y: Tensor
    attributes: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What one party knows when it attacks.

    Attributes:
        threat: the party and the form.
        reading: the name of the estimator that turned what was seen into observations.
        input_shape: shape of one input.
        n_classes: number of classes; 0: the labels are numbers in [0, 1].
        observations: what was seen of others' samples.
        own: the party's own batches by round (party `client`).
        output_layer: the name of the plain model's output layer, which is public; its parameters are
            `<name>.weight` [classes, features] and `<name>.bias` [classes].
        disclosures: what broadcasts show of the server's model, only if the attack's goal is extraction.
        loss: what the model is trained for, one of `fedarena.problem.loss.LOSSES`.
        population: samples of the attacker's own, only if the attack declares that it needs them.
        model: what the party has of the final model, only for goals that attack the final model.
        candidates: candidate samples that belong to no single observation, for the same goals.
        protocol: the protocol with its public facts, which an attacker can simulate, for the same goals.
        initial: the public distribution of the initial parameters for such a simulation, for the same goals.
    """

    threat: Threat
    reading: str
    input_shape: tuple[int, ...]
    n_classes: int
    observations: tuple[Observation, ...]
    own: dict[int, Batch] = field(default_factory=dict)
    output_layer: str = ""
    disclosures: tuple[Disclosure, ...] = ()
    loss: str = "cross-entropy"
    population: Population | None = None
    model: Predictor | None = None
    candidates: Candidates | None = None
    protocol: Defense | None = None
    initial: InitialDistribution | None = None

    @property
    def criterion(self) -> Criterion:
        """How labels become targets, and outputs predictions."""
        return Criterion(self.loss, self.n_classes)


def seal(view: View) -> View:
    """A deep copy through serialisation. It holds no reference into the run and nothing but the view's fields."""
    copy: View = pickle.loads(dumps(view))
    return copy
