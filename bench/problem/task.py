"""What every party knows before training, and the local work of one client in one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from fedarena.core.tensors import Tensors, nbytes
from fedarena.models.bottleneck import bottlenecks, penalties
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule


@dataclass(frozen=True)
class Task:
    """Public facts of a federation; defenses and attacks may read all of it.

    Attributes:
        model: the architecture. Its own parameter values are never used.
        input_shape: shape of one input, for images [channels, height, width].
        n_classes: number of classes; 0: the labels are numbers.
        sizes: N_c, samples held by each client (public: they weight the average).
        schedule: rounds, batch size, optimisers.
        assumed_corrupted: how many of all clients the server assumes to be corrupted. The true number may differ.
    """

    model: nn.Module
    input_shape: tuple[int, ...]
    n_classes: int
    sizes: tuple[int, ...]
    schedule: Schedule
    assumed_corrupted: int = 0

    def in_round(self, t: int) -> Task:
        """The task with the learning rate of round t; itself where the rate is the same in all rounds."""
        schedule = self.schedule.in_round(t)
        if schedule is self.schedule:
            return self
        task = copy(self)  # with what is cached of the model, which `replace` would compute again
        object.__setattr__(task, "schedule", schedule)
        return task

    @property
    def participants(self) -> int:
        """How many clients take part in a round: ⌈c·C⌋, at least one."""
        return max(1, round(self.schedule.participation * len(self.sizes)))

    @property
    def assumed_corrupted_per_round(self) -> int:
        """f, how many of a round's n_t participants the server assumes to be corrupted: ⌈assumed_corrupted·n_t/C⌉."""
        return -(-self.assumed_corrupted * self.participants // len(self.sizes))

    @property
    def criterion(self) -> Criterion:
        """The loss that the model is trained for."""
        return Criterion(self.schedule.loss, self.n_classes)

    @cached_property
    def layers(self) -> tuple[tuple[str, nn.Linear | nn.Conv2d], ...]:
        """The dense and convolutional layers, by module name, in the order of computation; the last is the output.

        A model may register its layers in another order.
        """
        kinds = (nn.Linear, nn.Conv2d)
        layers = {name: module for name, module in self.model.named_modules() if isinstance(module, kinds)}
        # A copy in evaluation mode draws no dropout and changes no running mean.
        model, called = deepcopy(self.model).eval(), dict.fromkeys(layers, -1)
        for name in layers:
            model.get_submodule(name).register_forward_hook(partial(_note, called, name))
        like = next(model.parameters())
        with torch.no_grad():
            model(torch.zeros(2, *self.input_shape, device=like.device, dtype=like.dtype))
        return tuple(sorted(layers.items(), key=lambda item: called[item[0]]))

    @property
    def convolutional(self) -> bool:
        """Whether the model has a convolutional layer."""
        return any(isinstance(layer, nn.Conv2d) for _, layer in self.layers)

    @property
    def output_bias(self) -> str | None:
        """The name of the output layer's bias, if it has one."""
        name, layer = self.layers[-1]
        return f"{name}.bias" if layer.bias is not None else None

    def outputs(self, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """f(x; params): [n, *input_shape] → [n, outputs]; with cross-entropy the logits.

        Args:
            params: may hold what layers draw, too (`Batch.masks`); without it they draw nothing.
        """
        out: Tensor = functional_call(self.model, dict(params), (x,), tie_weights=self._tied)
        return out

    @cached_property
    def _tied(self) -> bool:
        """Whether a tensor of the model has two names; to look for them anew takes a third of a call's overhead."""
        named = self.model.named_parameters, self.model.named_buffers
        tensors = [t for each in named for _, t in each(remove_duplicate=False)]
        return len({id(t) for t in tensors}) < len(tensors)

    def loss(self, params: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        """The mean loss, with the penalties of bottlenecks.

        Args:
            y: classes [n] (int64), probabilities [n, n_classes], or of numbers [n] themselves.
        """
        with penalties(self.model, self.bottlenecks) as more:
            out = self.outputs(params, x)
        return sum(more, self.criterion.mean(out, y))

    @cached_property
    def bottlenecks(self) -> tuple[str, ...]:
        """The names of the model's variational bottlenecks."""
        return bottlenecks(self.model)

    def entering(self, layer: str, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """What enters a layer of the model, for samples [n, *input_shape]."""
        return self._entering([layer], params, x)[layer]

    def _entering(self, layers: Sequence[str], params: Mapping[str, Tensor], x: Tensor) -> dict[str, Tensor]:
        """What enters each of these layers, by its name."""
        found: dict[str, Tensor] = {}
        hooks = [
            self.model.get_submodule(layer).register_forward_pre_hook(partial(_keep, found, layer)) for layer in layers
        ]
        try:
            self.outputs(params, x)
        finally:
            for hook in hooks:
                hook.remove()
        return found

    @cached_property
    def batch_norms(self) -> tuple[str, ...]:
        """The names of the layers that normalise by the mean and variance of the batch at hand."""
        layers = self.model.named_modules()
        return tuple(name for name, layer in layers if isinstance(layer, _BatchNorm) and layer.running_mean is None)

    def batch_statistics(self, params: Mapping[str, Tensor], x: Tensor) -> Tensors:
        """What batch normalisation takes of a batch [n, *input_shape], by layer: `NAME.mean`, `NAME.variance`.

            μ = mean h,  σ² = mean (h − μ)²    over samples and positions of what enters the layer, [channels] each

        Running statistics are (1 − m)·before + m·(μ, n'/(n' − 1)·σ²) of n' values with a public m, from which a server
        that knows those before has μ and σ² again.
        """
        found: Tensors = {}
        for name, h in self._entering(self.batch_norms, params, x).items():
            values = h.transpose(0, 1).flatten(1)
            found |= {f"{name}.mean": values.mean(1), f"{name}.variance": values.var(1, correction=0)}
        return found

    @torch.no_grad()
    def predictions(self, params: Mapping[str, Tensor], x: Tensor, scale: float) -> Tensor:
        """Outputs for inputs as stored [N, *input_shape], in which `scale` means 1.0.

        They are computed for some samples at a time, in the precision of the parameters.
        """
        # Activations of more samples do not fit into the cache with convolutions; dense layers gain by fewer calls.
        at_once = 128 if self.convolutional else 1000
        kind = next(iter(params.values())).dtype
        return torch.cat([self.outputs(params, part.to(kind) / scale) for part in x.split(at_once)])


def _keep(found: dict[str, Tensor], name: str, layer: nn.Module, given: tuple[Tensor, ...]) -> None:
    """A forward pre-hook that keeps what enters the layer."""
    found[name] = given[0]


def _note(called: dict[str, int], name: str, *_: Any) -> None:
    """A forward hook that notes that the layer was computed after all others so far."""
    called[name] = max(called.values()) + 1


def targets(y: Tensor, n_classes: int, like: Tensor) -> Tensor:
    """Classes [...] → probabilities [..., n_classes], in the number format of `like`; numbers stay numbers."""
    return (torch.nn.functional.one_hot(y, n_classes) if n_classes else y).to(like)


@dataclass(frozen=True)
class Batch:
    """Samples in the order in which the local steps take them. A Poisson batch may hold none (b = 0).

    Attributes:
        x: inputs [steps, b, *input_shape]; stacked over clients [clients, steps, b, ...].
        y: classes [steps, b] (int64), or probabilities [steps, b, n_classes]. An attacker's need not be probabilities:
            the loss is linear in them (cross-entropy), or a distance from them.
        masks: what layers draw for the samples, by buffer [steps, b, ...], such as masks of dropout
            (`fedarena.models.drawn`); {}: nothing.
    """

    x: Tensor
    y: Tensor
    masks: Mapping[str, Tensor] = field(default_factory=dict)

    def masks_of(self, step: int) -> dict[str, Tensor]:
        """The masks of one step, [b, ...]."""
        return {name: m[step] for name, m in self.masks.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return nbytes({"x": self.x, "y": self.y, **self.masks})

    def with_targets(self, n_classes: int) -> Batch:
        """The same with labels as probabilities [steps, b, n_classes]."""
        if self.y.is_floating_point():
            return self
        return replace(self, y=targets(self.y, n_classes, self.x))

    def images(self) -> tuple[Tensor, Tensor]:
        """All samples of one client without the step axis: [steps·b, ...]."""
        return self.x.flatten(0, 1), self.y.flatten(0, 1)


@dataclass(frozen=True)
class Auxiliary:
    """Samples that a server must hold.

    Attributes:
        per_class: how many of each class.
        dataset: the data set that they come from; "": the federation's own, whose clients then lack them.
        option: the name of the option that sets the number.
    """

    per_class: int
    dataset: str = ""
    option: str = field(default="", compare=False)
