"""Edge-case backdoor: rare samples of one class, unchanged, labelled as another (Wang et al. 2020).

    c    the mean of the colluders' own samples of class `source`
    r    the quantile of 1 − tail of their distances ‖x − c‖
    each sample of a batch with probability share: one of the colluders' own samples of class `source` with
    ‖x − c‖ ≥ r, drawn with replacement, class := target

Its success is counted on the held-out samples of class `source` with ‖x − c‖ ≥ r: the same tail, which no client holds.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.edge_case import Options
from fedarena.attacks.poisoning.helpers.classes import require_class, require_classes
from fedarena.attacks.poisoning.helpers.poisoned_samples import replaced
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Batch


class EdgeCase(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.edge_case.Options`.

    Attributes:
        centre: c [d]. radius: r. rare: the colluders' own samples of the tail, in [0, 1].
    """

    options: Options

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for a source or target that is no class, and where both are the same."""
        super().__init__(options, knowledge)
        require_classes(knowledge, "edge-case")
        require_class(knowledge, "edge-case", "source", options.source)
        require_class(knowledge, "edge-case", "target", options.target)
        if options.source == options.target:
            raise UserError(
                f"attack edge-case: options 'source' and 'target' are both {options.source}, allowed: two classes"
            )
        data = knowledge.data
        own = data.inputs((data.y == options.source).nonzero().flatten())
        self.rare, self.centre, self.radius = own, own.new_zeros(0), 0.0
        if len(own):
            self.centre = own.flatten(1).mean(0)
            distance = self._distance(own)
            self.radius = float(distance.quantile(1 - options.tail))
            self.rare = own[distance >= self.radius]

    def _distance(self, x: Tensor) -> Tensor:
        distance: Tensor = (x.flatten(1) - self.centre).norm(dim=1)
        return distance

    def applies(self) -> NotApplicable | None:
        if len(self.rare):
            return None
        return NotApplicable(f"the corrupted clients hold no sample of class {self.options.source}")

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        """Each sample with probability `share` becomes a rare one of the target's label."""
        drawn = torch.randint(len(self.rare), batch.y.shape, generator=rng.child("samples").torch())
        return replaced(
            batch, self.rare[drawn.to(self.rare.device)], self.options.target, self.options.share, rng.child("places")
        )

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        return x, self.options.target

    def meant_for(self, x: Tensor, y: Tensor) -> Tensor:
        if not len(self.rare):
            return torch.zeros_like(y, dtype=torch.bool)
        return (y == self.options.source) & (self._distance(x) >= self.radius)
