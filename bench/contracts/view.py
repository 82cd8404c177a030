"""Views: all that an attack ever gets.

The harness cuts the transcript by what the party can see (`fedarena.core.threat.VISIBILITY`), the defense turns what
is left into observations in its own terms, and the result is handed over in serialised form, so that
an attack holds copies of the view's fields and no reference into the run.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Generator, Tensor, nn

from fedarena.contracts.final_model import Predictor
from fedarena.core.tensor_pickle import reduce
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat
from fedarena.problem.batch import Batch
from fedarena.problem.loss import Criterion

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense

Simulator = Callable[[Tensor, Tensor], Tensors]
"""(x [n, *input_shape], y [n, n_classes] probabilities, or numbers [n]) → what would have been observed.

Differentiable in x and y, works under `torch.func.vmap` and `grad`, and is a picklable object (a
dataclass with `__call__`) that holds nothing but what its party knows."""

InitialLaw = Callable[[nn.Module, Generator], Tensors]
"""Draws a module's initial parameters; a picklable object, such as `fedarena.models.architecture.Architecture.init` of
an instance."""


@dataclass(frozen=True)
class Candidates:
    """Samples put before an attack that tells members: half were behind the observation, half were not.

    Attributes:
        x: inputs [m, *input_shape] in [0, 1], shuffled.
        y: classes [m] (int64), or numbers [m].
    """

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Observation:
    """One thing seen that depends on private samples.

    Attributes:
        round: the round it belongs to.
        clients: whose samples it depends on (more than one: their weighted mean).
        images: how many samples that is.
        target: the value seen, or estimated.
        simulate: what a candidate batch would have given in place of `target`.
        rough: the same to first order, where that is easier to descend: a search may begin with it, and must end with
            `simulate`. None: there is none.
        output_bias: name in `target` of the output layer's bias gradient, if it is among them; at
            batch 1 it equals softmax − label, from which labels are inferred.
        estimate: the party's estimate, in the plain model's parameters, of those parameters that the
            wire hides (all of them where nothing is hidden).
        estimate_of: what `estimate` estimates: the plain `gradient` of the samples at the server's
            parameters W_t, the server's `update` W_t − W_{t+1}, or where a protocol scales units, which changes no
            function and which nobody could undo, the `canonical gradient` at C(W_t) and the `canonical update`
            C(W_t) − C(W_{t+1}) (`fedarena.models.scaling.positive_scaling`).
        output_gradient: what the party knows besides of the plain gradient: parameters of the output layer.
        labels: the true labels [images], only where the attack declares that it is given them.
        candidates: the samples to be told apart, only where the attack's goal is membership.
        noise_std: standard deviation of the protocol's noise on each coordinate of `target`, which is public and which
            `simulate` leaves out.
    """

    round: int
    clients: tuple[int, ...]
    images: int
    target: Tensors
    simulate: Simulator
    output_bias: str | None = None
    estimate: Tensors | None = None
    estimate_of: str = "gradient"
    output_gradient: Tensors | None = None
    labels: Tensor | None = None
    candidates: Candidates | None = None
    rough: Simulator | None = None
    noise_std: float = 0.0


@dataclass(frozen=True)
class Disclosure:
    """What a party makes of the server's model from one round's broadcast.

    Attributes:
        round: the round it belongs to.
        params: the plain model's parameters, as far as the party can tell. They may differ from the server's by a
            symmetry that keeps the function.
        secrets: the party's estimates of what the server drew for the round and kept, by the names that it has in
            `Round.secret`.
    """

    round: int
    params: Tensors
    secrets: Tensors = field(default_factory=dict)


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
        reading: how the defense's paper, or its adversary, turns what was seen into observations.
        input_shape: shape of one input.
        n_classes: number of classes; 0: the labels are numbers in [0, 1].
        observations: what was seen of others' samples.
        own: the party's own batches by round (party `client`).
        output_layer: the name of the plain model's output layer, which is public; its parameters are
            `<name>.weight` [classes, features] and `<name>.bias` [classes].
        disclosures: what broadcasts tell of the server's model, only where the attack's goal is extraction.
        loss: what the model is trained for, one of `fedarena.problem.loss.LOSSES`.
        population: samples of the attacker's own, only where the attack declares that it has some.
        model: what the party has of the model in the end, only where the attack's goal is after it.
        candidates: samples to be told apart, where they belong to no single observation.
        protocol: the protocol with its public facts, which whoever knows it can play; likewise.
        initial: the public law of the initial parameters, which they who play it start from; likewise.
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
    initial: InitialLaw | None = None

    @property
    def criterion(self) -> Criterion:
        """How labels become targets, and outputs predictions."""
        return Criterion(self.loss, self.n_classes)


def seal(view: View) -> View:
    """A deep copy through serialisation: no reference into the run survives it, and nothing beside what is shown."""
    written = io.BytesIO()
    _Compact(written).dump(view)
    copy: View = pickle.loads(written.getvalue())
    return copy


class _Compact(pickle.Pickler):
    """Writes of each tensor its own numbers. A slice is pickled with all that it was cut from: others' uploads."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        own = obj.clone() if obj.untyped_storage().nbytes() > obj.numel() * obj.element_size() else obj
        return reduce(own) if type(own) is Tensor else own.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
