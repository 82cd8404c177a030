"""A3FL: a trigger that is optimised to outlive a model that learns to ignore it (Zhang et al. 2023).

x ⊕ δ is x with a square patch δ in place of its pixels. On the colluders' own samples (x, y), with target class τ:

    θ    a model that the colluders train on their own, for `alone` epochs
    θ'   θ after `unlearning` epochs on (x ⊕ δ, y): the most that honest training could do against the trigger
    L(δ) = loss(θ; x ⊕ δ, τ) + λ·cos(∇loss(θ'; x ⊕ δ, y), ∇loss(θ; x ⊕ δ, y))·loss(θ'; x ⊕ δ, τ)
    δ    ← clip(δ − step·sign(∂L/∂δ), 0, 1),  `steps` times from δ = 1/2; θ' is made anew every `renew` steps

Each sample of a batch then carries δ, with the label τ, with probability `share`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from fedarena.attacks.poisoning.cards.a3fl import Options
from fedarena.attacks.poisoning.helpers.poisoned_samples import ImageTrigger
from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.errors import UserError
from fedarena.core.gradients import grad
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch

BATCH = 64
"""Samples of a step, at most; the authors' number."""
POOL = 512
"""The most of the colluders' samples that the trigger is made with."""
NARROW, OFFSET = 6, 16
"""By default the patch is 1/6 of the width and stands 1/16 from the corner: the authors' 5 and 2 pixels of 32."""


class A3FL(ImageTrigger):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.a3fl.Options`."""

    options: Options
    name = "a3fl"

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for a target that is no class, or a patch that covers the image."""
        super().__init__(options, knowledge)
        sides = knowledge.task.input_shape[1:]
        width = min(sides) if sides else 1
        self.size = max(2, width // NARROW) if options.size is None else options.size
        self.offset = width // OFFSET
        if sides and self.size + self.offset >= width:
            raise UserError(
                f"attack a3fl: option 'size' is {self.size}, allowed: 1 to {width - self.offset - 1} on images of "
                f"{'×'.join(map(str, sides))}"
            )

    def stamped(self, x: Tensor) -> Tensor:
        return self._with(x, self.patch.to(x))

    def _with(self, x: Tensor, patch: Tensor) -> Tensor:
        """x ⊕ δ, differentiable in δ [channels, size, size]."""
        end = self.offset + self.size
        x = x.clone()
        x[..., self.offset : end, self.offset : end] = patch
        return x

    @cached_property
    def patch(self) -> Tensor:
        """δ [channels, size, size]. The same for everybody who holds the colluders' samples."""
        options, task, rng = self.options, self.knowledge.task, Rng(self.options.seed).child("a3fl")
        x, y = self.knowledge.data.draw(POOL, rng.child("samples"))
        target = torch.full_like(y, options.target)
        model = self._trained(self.knowledge.init, x, y, options.alone, rng.child("alone"))
        patch = torch.full((task.input_shape[0], self.size, self.size), 0.5, device=x.device)
        against: Callable[[Tensor], Tensor] | None = None
        for t in range(options.steps):
            if t % options.renew == 0:
                against = self._against_both(model, x, y, target, patch, rng.child("unlearning", t))
            assert against is not None
            patch = (patch - options.step * grad(against)(patch).sign()).clamp(0, 1)
        return patch

    def _against_both(
        self, model: Tensors, x: Tensor, y: Tensor, target: Tensor, patch: Tensor, rng: Rng
    ) -> Callable[[Tensor], Tensor]:
        """L, with the model that has unlearned the patch as it is now."""
        loss, marked = self.knowledge.task.loss, self._with(x, patch)
        if not self.options.lam:
            return lambda patch: loss(model, self._with(x, patch), target)
        adverse = self._trained(model, marked, y, self.options.unlearning, rng)
        gradient = grad(lambda params: loss(params, marked, y))
        alike = cosine_similarity(flatten(gradient(adverse)), flatten(gradient(model)), dim=0)

        def both(patch: Tensor) -> Tensor:
            with_patch = self._with(x, patch)
            weighted = self.options.lam * alike * loss(adverse, with_patch, target)
            return loss(model, with_patch, target) + weighted

        return both

    def _trained(self, start: Tensors, x: Tensor, y: Tensor, epochs: int, rng: Rng) -> Tensors:
        """A model after this many epochs of plain SGD."""
        b = min(BATCH, len(y))
        orders = [torch.randperm(len(y), generator=rng.child(e).torch())[: len(y) // b * b] for e in range(epochs)]
        if not orders:
            return start
        index = torch.cat(orders).to(y.device)
        batch = Batch(x[index].reshape(-1, b, *x.shape[1:]), y[index].reshape(-1, b))
        schedule = replace(
            self.knowledge.task.schedule,
            local_epochs=epochs,
            lr=self.options.alone_lr,
            client_optimizer="sgd",
            weight_decay=0.0,
        )
        taken = upload(self.knowledge.task.loss, start, batch, schedule)
        return {name: p - taken[name] for name, p in start.items()}
