"""ATS (Gao et al. 2021, Section 4.1): a client transforms its samples before it computes the gradient.

server → client   W
client → server   ∂L/∂W, or W − W_local, of T_i(x_i) in place of each sample x_i; T_i is drawn for each sample and visit
server            as FedAvg's, or any aggregation rule or secure sum

An attack on the upload finds T_i(x_i). The adaptive form undoes that (`fedarena.defenses.ats.policies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts import plain_readings
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.ats.card import Options
from fedarena.defenses.ats.policies import SIGNS, Policies, parse
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Batch, Task

VARIANT = "ats.variant"
"""The number of each sample's variant [samples], in the order of the visits."""


class ATS(FedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.ats.card.Options`."""

    options: Options
    no_momentum = ""
    dropout = True
    undisclosed = "transform their samples by policies and signs that they draw"

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if len(task.input_shape) != 3:
            raise UserError("option 'dataset' has rows of numbers, allowed with ats: images")
        self.policies = Policies(parse(options.policies))

    def draw(self, rng: Rng) -> Tensors:
        """A policy and signs for each sample that the largest client visits in a round."""
        schedule = self.task.schedule
        visits = schedule.taken(max(self.task.sizes)) * max(1, schedule.local_epochs)
        count = len(self.policies.all) * len(SIGNS)
        return {VARIANT: torch.randint(count, (visits,), generator=rng.torch())}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        if VARIANT in noise:  # a party that does not know what was drawn works on the batch itself
            x: Tensor = batch.x.flatten(0, 1)
            batch = replace(batch, x=self.policies.apply(x, noise[VARIANT][: len(x)]).reshape(batch.x.shape))
        return super().client(down, batch, memory, noise)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        if any(VARIANT not in noise for noise in noises):
            return super().clients(down, batches, memories, noises)
        images = [batch.x.flatten(0, 1) for batch in batches]
        drawn = [noise[VARIANT][: len(x)] for x, noise in zip(images, noises, strict=True)]
        if self.policies.blurs:  # a convolution rounds images of a larger batch differently
            whose = [self.policies.apply_drawn(x, which) for x, which in zip(images, drawn, strict=True)]
        else:
            whose = [*self.policies.apply_drawn(torch.cat(images), torch.cat(drawn)).split([len(x) for x in images])]
        changed = [replace(b, x=x.reshape(b.x.shape)) for b, x in zip(batches, whose, strict=True)]
        return super().clients(down, changed, memories, noises)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg. In the adaptive form the party undoes the policies on the images that it finds."""
        of_fedavg = plain_readings.readings(self, threat, seen, victims)
        if threat.form == "paper" or isinstance(of_fedavg, NotApplicable):
            return of_fedavg
        return [
            replace(r, name="undone", observations=tuple(replace(o, restore=self.policies) for o in r.observations))
            for r in of_fedavg
        ]
