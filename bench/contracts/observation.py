"""What a party derives from the rounds it saw: observations of others' samples, disclosures of the server's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from fedarena.contracts.estimand import GRADIENT, Estimand
from fedarena.contracts.final_model import WhiteBox
from fedarena.core.tensors import Tensors

Simulator = Callable[[Tensor, Tensor], Tensors]
"""(x [n, *input_shape], y [n, n_classes] probabilities, or numbers [n]) → what would have been observed.

Differentiable in x and y, works under `torch.func.vmap` and `grad`, and is a picklable object (a
dataclass with `__call__`) that holds nothing but what its party knows."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of batch normalisation that one client sent beside its upload.

    Attributes:
        target: means and variances by layer [channels], named as by `fedarena.problem.task.Task.batch_statistics`.
        simulate: samples x [n, *input_shape] → the same of a candidate batch; an object such as a `Simulator`.
    """

    target: Tensors
    simulate: Callable[[Tensor], Tensors]


@dataclass(frozen=True)
class Candidates:
    """Candidate samples for membership inference: half of them were behind the observation, half were not.

    Attributes:
        x: inputs [m, *input_shape] in [0, 1], shuffled.
        y: classes [m] (int64), or numbers [m].
        clients: the client whose data set each is asked about, [m] (int64); None: the question is put of all clients,
            or of the samples behind one observation.
    """

    x: Tensor
    y: Tensor
    clients: Tensor | None = None


@dataclass(frozen=True)
class Observation:
    """One value that a party saw or estimated, and that depends on private samples.

    Attributes:
        round: the round it belongs to.
        clients: whose samples it depends on (more than one: their weighted mean).
        images: how many samples that is.
        target: the value seen, or estimated.
        simulate: what a candidate batch would have given in place of `target`.
        rough: `simulate` to first order, if that is easier to minimise. A search may begin with it, and must end with
            `simulate`.
        output_bias: name in `target` of the output layer's bias gradient, if it is among them; at
            batch 1 it equals softmax − label, from which labels are inferred.
        estimate: the party's estimate, in the plain model's parameters, of those parameters that the
            wire hides (all of them where nothing is hidden).
        estimate_of: the quantity that `estimate` estimates.
        output_gradient: the plain gradient of the output layer's parameters, if the party knows it as well.
        labels: the true labels [images], only where the attack declares that it gets them.
        candidates: the candidate samples, only if the attack's goal is membership inference.
        noise_std: standard deviation of the protocol's noise on each coordinate of `target`, which is public and which
            `simulate` leaves out.
        restore: what the party makes of images [n, *input_shape] that it found, if clients change their samples before
            they work on them. The harness calls it on the images of a reconstruction; None: they stay as they are.
        sent: the model that a malicious server had the clients work at, of several models the one of the first of
            `clients`; without a server the model that a node began with, as far as the party can tell; None: the
            server's own.
        left: the model that these clients alone would have led to (`fedarena.contracts.left_models`), only where the
            attack declares that it needs it and the party knows it.
        statistics: what the client sent beside its upload, for a party that knows the protocol and sees the message in
            clear; None: nothing.
    """

    round: int
    clients: tuple[int, ...]
    images: int
    target: Tensors
    simulate: Simulator
    output_bias: str | None = None
    estimate: Tensors | None = None
    estimate_of: Estimand = GRADIENT
    output_gradient: Tensors | None = None
    labels: Tensor | None = None
    candidates: Candidates | None = None
    rough: Simulator | None = None
    noise_std: float = 0.0
    sent: Tensors | None = None
    restore: Callable[[Tensor], Tensor] | None = None
    left: WhiteBox | None = None
    statistics: Statistics | None = None


@dataclass(frozen=True)
class Disclosure:
    """What a party learns of the server's model from one round's broadcast.

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
class Reading:
    """The observations that one estimator derives from what a party saw."""

    name: str
    observations: tuple[Observation, ...]
