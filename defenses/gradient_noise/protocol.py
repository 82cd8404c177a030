"""Noise on gradients (Zhu et al. 2019, Section 5): T(g; z) = g + z, of Gaussian or Laplacian entries.

Nothing bounds g, so that no ε follows; `fedarena.defenses.dp_sgd.protocol` is the protocol that bounds it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd.readings import readings
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.defenses.gradient_noise.card import Options
from fedarena.problem.task import Batch

NOISE = "gradient-noise.z"
"""z [d], in the order of the parameters."""


class GradientNoise(ChangedUpload):
    """The protocol; see the module's docstring and `fedarena.defenses.gradient_noise.card.Options`."""

    options: Options

    @property
    def noise_std(self) -> float:
        return self.options.std

    def draw(self, rng: Rng) -> Tensors:
        """z. A Laplacian number is a random sign times an exponential one, and its deviation √2 times its scale."""
        generator = rng.torch()
        if self.options.law == "gaussian":
            return {NOISE: self.options.std * torch.randn(self.entries, generator=generator)}
        sign = 1.0 - 2.0 * torch.randint(2, (self.entries,), generator=generator)
        size = torch.empty(self.entries).exponential_(generator=generator)
        return {NOISE: self.options.std / 2**0.5 * sign * size}

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        return combine(1.0, up, 1.0, shaped(noise[NOISE], up)) if NOISE in noise else up

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg, with the noise's public size."""
        return readings(self, False, threat, seen, victims)
