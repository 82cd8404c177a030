"""Steering: loss differences along shared directions, for a gradient of the attacker's choice.

    u_k = λ h z_kᵀ g*         h: σ, for central differences 2σ

The server of such a protocol (`fedarena.contracts.shared_directions`), such as BAFFLE, gets only K numbers as an upload
and steps only along the z_k, which every client can draw from the broadcast. The attacker sends the differences that an
honest client would measure if its gradient were λ g*, without measuring any loss. It may use more than forward passes:
g* is computed by backpropagation on its own samples.
"""

from __future__ import annotations

import torch

from fedarena.attacks.poisoning.cards.steer import Options
from fedarena.attacks.poisoning.helpers.classes import require_classes
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.contracts.shared_directions import SharedDirections
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, scale
from fedarena.core.threat import NotApplicable


class Steer(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.steer.Options`."""

    options: Options
    follows = False
    tunes = {"strength": (1.0, 4.0, 16.0, 64.0)}  # noqa: RUF012  (a ClassVar of the base)
    only_length = ("strength",)

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for target=flip where the labels are numbers."""
        super().__init__(options, knowledge)
        if options.target == "flip":
            require_classes(knowledge, "steer", "option 'target' is flip")

    def applies(self) -> NotApplicable | None:
        defense = self.knowledge.defense
        if not isinstance(defense, SharedDirections):
            return NotApplicable("no shared perturbations: uploads are not loss differences along known directions")
        why = defense.why_not_shared()
        return NotApplicable(why) if why else None

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        defense = self.knowledge.defense
        assert isinstance(defense, SharedDirections)
        wanted = flatten(scale(self.options.strength, self._target(view.down, rng)))
        projections = torch.stack([z.to(wanted) @ wanted for z in defense.shared_directions(view.down)])
        return defense.upload_of((projections * defense.spacing).repeat(view.size, 1)), memory

    def _target(self, down: Tensors, rng: Rng) -> Tensors:
        """g*, named and shaped like the parameters."""
        task = self.knowledge.task
        x, y = self.knowledge.data.draw(self.options.samples, rng.child("samples"))
        params = {name: down[name] for name, _ in task.model.named_parameters()}
        if self.options.target == "flip":
            y = task.n_classes - 1 - y
        g = gradient(task.loss, params, x, y)
        return g if self.options.target == "flip" else scale(-1.0, g)
