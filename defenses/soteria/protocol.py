"""Soteria (Sun et al. 2021, Section 4.2): prune the representation's entries that tell most of the input.

r(x) is the representation [m] that enters the output layer, whose gradient is δ rᵀ. The ⌊p·m⌉ entries with the smallest

    Σ_j ‖∂r_i(x_j)/∂x‖₂ / |r_i(x_j)|                                   over the samples x_j of the batch

are pruned: their columns of that layer's gradient are set to 0. Small ones are those whose change would move what an
inverter finds farthest, ‖r_i (∂r_i/∂x)⁻¹‖. No other layer is touched.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap

from fedarena.contracts.aggregator import Aggregator
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors
from fedarena.defenses.fedavg.changed_upload import EntriesLeftOut
from fedarena.defenses.soteria.card import Options
from fedarena.problem.task import Batch, Task

AT_ONCE = 32
"""Entries of the representation whose gradients are computed as one batch."""


class Soteria(EntriesLeftOut):
    """The protocol; see the module's docstring and `fedarena.defenses.soteria.card.Options`."""

    options: Options
    one_batch = "soteria"
    dropout = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        self.output, layer = task.layers[-1]
        """The name of the output layer."""
        if not isinstance(layer, nn.Linear) or len(task.layers) == 1:
            raise UserError(
                "option 'model' has no representation before a dense output layer, allowed with soteria: a model with "
                "a hidden layer and a dense output layer"
            )

    @property
    def defended(self) -> str:
        """The name of the gradient that is pruned."""
        return f"{self.output}.weight"

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        x, _ = batch.images()
        pruned = round(self.options.share * up[self.defended].shape[1])
        ratios = self.ratios(down, x)
        last = ratios.sort().values[pruned - 1] if pruned else ratios.new_tensor(-1.0)
        return {**up, self.defended: up[self.defended] * (ratios > last).to(up[self.defended])}

    def ratios(self, params: Tensors, x: Tensor) -> Tensor:
        """Σ_j ‖∂r_i(x_j)/∂x‖/|r_i(x_j)| [m] for samples [b, *input_shape]."""
        r, pull, *_ = vjp(lambda samples: self.representation(params, samples), x.detach())

        def length(unit: Tensor) -> Tensor:
            gradient: Tensor = pull(unit.expand_as(r))[0].flatten(1)
            lengths: Tensor = gradient.norm(dim=1)
            return lengths

        lengths: Tensor = vmap(length, chunk_size=AT_ONCE)(torch.eye(r.shape[1]).to(r))
        ratios: Tensor = torch.where(r.T == 0, torch.inf, lengths / r.T.abs())
        return ratios.sum(1).detach()

    def representation(self, params: Tensors, x: Tensor) -> Tensor:
        """r [b, m]: what enters the output layer."""
        return self.task.entering(self.output, params, x)

    def kept(self, upload: Tensors) -> Tensors:
        """All entries but the columns of zeros."""
        everything = {name: torch.ones_like(t) for name, t in upload.items()}
        columns = (upload[self.defended] != 0).any(0).to(upload[self.defended])
        return {**everything, self.defended: columns.expand_as(upload[self.defended])}
