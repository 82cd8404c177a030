"""Colluders who train a backdoor on their own, from the broadcast on, and send the change of the model.

With G the broadcast, η the server's step on the mean of uploads, and n_t participants of which f_t collude:

    X     G after `epochs` epochs of plain SGD at rate `lr` on the colluder's samples, as the attack inside poisons
          them; with `ball`, after each epoch X ← G + (X − G)·min(1, ball/‖X − G‖)  (Wang et al. 2020, PGD)
    sent  scale·(G − X)/η

With scale = 1 the colluder has the weight of an honest client. With scale = n_t/f_t the mean of the colluders' models
takes the place of the mean of the round: the server arrives at X, moved by what the honest clients add. With FedSGD η
is lr·server_lr, with local epochs server_lr, so that the same upload fits both.

A subclass changes the loss (`loss`), or leaves parameters alone (`mask`), or changes what is sent (`sends_as`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedarena.attacks.poisoning.helpers.plain_broadcast import (
    needs_plain_broadcast,
    needs_plain_uploads,
    recalled,
    stored,
)
from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, scale, stack
from fedarena.core.threat import NotApplicable
from fedarena.problem.local_training import Loss, upload
from fedarena.problem.task import Batch

TINY = 1e-30
"""In place of a length of zero."""
INSIDE = "inside."
"""Prefix of the attack inside in the memory."""


class LocalBackdoor(Around):
    """See the module's docstring. `batch` leaves batches alone, so that `view.own` are honest uploads."""

    options: Any
    name: ClassVar[str]
    """The attack's name, for messages."""

    def __init__(self, options: Any, knowledge: AttackerKnowledge, inner: Poisoning) -> None:
        """Raises UserError where the attack inside changes no samples, or is a wrapper."""
        super().__init__(options, knowledge, inner)
        if isinstance(inner, Around):
            raise UserError(
                f"attack {self.name} trains on its own, but inside it is a wrapper, allowed inside: an attack on "
                "samples, such as dba; other wrappers stand before it"
            )
        if type(inner).batch is Poisoning.batch:
            raise UserError(
                f"attack {self.name} trains on what the attack inside makes of samples, but that changes none, allowed "
                "inside: an attack on samples, such as dba"
            )

    def applies(self) -> NotApplicable | None:
        return self.inner.applies() or needs_plain_broadcast(self.knowledge) or needs_plain_uploads(self.knowledge)

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return batch

    def loss(self, down: Tensors) -> Loss:
        """What a colluder descends, given the broadcast."""
        return self.knowledge.task.loss

    def mask(self, view: RoundView, memory: Tensors) -> tuple[Mapping[str, Tensor] | None, Tensors]:
        """1 for parameters that it trains and 0 for others (None: it trains all), and the memory."""
        return None, memory

    def factor(self, view: RoundView) -> float:
        """`scale`."""
        return 1.0

    def sends_as(self, sent: Tensors, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        """What is sent for the uploads [f_t, ...] that training gave, and the memory."""
        return sent, memory

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        inside, memory = recalled(memory, INSIDE), {n: t for n, t in memory.items() if not n.startswith(INSIDE)}
        mask, memory = self.mask(view, memory)
        trained = [self._trained(view, client, mask, rng.child("train", client)) for client in view.clients]
        step = self.knowledge.defense.in_round(view.round).step_size
        sent = scale(self.factor(view) / step, stack(trained))
        sent, inside = self.inner.craft(replace(view, own=sent), inside, rng.child("inside"))
        sent, memory = self.sends_as(sent, view, memory, rng.child("sends"))
        return sent, memory | stored(inside, INSIDE)

    def _trained(self, view: RoundView, client: int, mask: Mapping[str, Tensor] | None, rng: Rng) -> Tensors:
        """G − X of one colluder. It trains on as many of the pool's samples as it holds itself."""
        task, options = self.knowledge.task, self.options
        x, y = self.knowledge.data.draw(task.sizes[client], rng.child("samples"))
        b = min(options.batch_size, len(y))
        steps = options.epochs * (len(y) // b)
        orders = [torch.randperm(len(y), generator=rng.child("order", e).torch()) for e in range(options.epochs)]
        index = torch.cat([order[: len(y) // b * b] for order in orders]).to(y.device)
        clean = Batch(x[index].reshape(steps, b, *x.shape[1:]), y[index].reshape(steps, b))
        poisoned = self.inner.batch(clean, view.round, client, rng.child("poison"))
        parts = 1 if options.ball is None else options.epochs
        return self._descended(view.down, poisoned, parts, mask)

    def _descended(self, down: Tensors, batch: Batch, parts: int, mask: Mapping[str, Tensor] | None) -> Tensors:
        """G − X for X after all steps of a batch, of which as many parts as these are projected onto the ball."""
        options, loss = self.options, self.loss(down)
        schedule = replace(
            self.knowledge.task.schedule,
            local_epochs=options.epochs // parts,
            lr=options.lr,
            client_optimizer="sgd",
            weight_decay=0.0,
        )
        gone = {name: torch.zeros_like(g) for name, g in down.items()}
        for x, y in zip(batch.x.chunk(parts), batch.y.chunk(parts), strict=True):
            start = {name: g - gone[name] for name, g in down.items()}
            taken = upload(loss, start, Batch(x, y), schedule, metric=mask)
            gone = {name: gone[name] + (t if mask is None else t * mask[name]) for name, t in taken.items()}
            if options.ball is not None:
                gone = scale(min(1.0, options.ball / max(float(flatten(gone).norm()), TINY)), gone)
        return gone
