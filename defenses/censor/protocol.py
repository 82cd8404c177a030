"""CENSOR (Zhang et al. 2025): an upload is a random vector orthogonal to the gradient, chosen by the loss.

Of each tensor g_l of the gradient a client makes K trials from random directions r_l of length one,

    v_l = r_l − ⟨r_l, g_l⟩ g_l/‖g_l‖²            u_l = ‖g_l‖ v_l/‖v_l‖

and sends the trial u with the smallest loss of its own batch at W − step·u. To first order that loss does not depend
on u: what a step along an orthogonal vector changes is of second order.

The released code divides by ‖g_l‖ in place of its square, so that ⟨v_l, g_l⟩ = ⟨r_l, g_l⟩(1 − ‖g_l‖): for tensors with
long gradients the chosen trial points along g_l. Where no trial lowers the loss, it sends g itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.contracts import plain_readings
from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, row, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.censor.card import Options
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.problem.task import Batch

DIRECTIONS = "censor.directions"
"""What a client draws: normal numbers [K, d], from which its trials come."""


class Censor(ChangedUpload):
    """The protocol; see the module's docstring and `fedarena.defenses.censor.card.Options`."""

    options: Options
    one_batch = "censor"
    dropout = False

    def draw(self, rng: Rng) -> Tensors:
        return {DIRECTIONS: torch.randn(self.options.trials, self.entries, generator=rng.torch())}

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        """The best trial; without the client's directions the gradient, which nobody else can be sure of."""
        if DIRECTIONS not in noise:
            return up
        directions = vmap(lambda r: shaped(r, up))(noise[DIRECTIONS].to(next(iter(up.values()))))
        tried = {name: self.beside(t, directions[name]) for name, t in up.items()}
        x, y = batch.images()

        def loss_after(u: Tensors) -> Tensor:
            return self.task.loss(combine(1.0, down, -self.options.step, u), x, y)

        losses = vmap(loss_after)(tried)
        if self.options.variant == "code" and losses.min() >= self.task.loss(down, x, y):
            return up
        return row(tried, int(losses.argmin()))

    def beside(self, g: Tensor, directions: Tensor) -> Tensor:
        """u [K, *shape] for a tensor g of the gradient and directions [K, *shape]; 0 where g is 0."""
        flat = g.flatten()
        length = flat.norm().clamp_min(torch.finfo(g.dtype).tiny)
        r = directions.flatten(1)
        r = r / r.norm(dim=1, keepdim=True)
        along = flat / length if self.options.variant == "paper" else flat
        v = r - (r @ (flat / length))[:, None] * along
        if self.options.variant == "paper":  # a tensor of one entry has no orthogonal direction but 0
            v = v - (v @ along)[:, None] * along if g.numel() > 1 else torch.zeros_like(v)
        unit = v / v.norm(dim=1, keepdim=True).clamp_min(torch.finfo(g.dtype).tiny)
        trials: Tensor = flat.norm() * unit
        return trials.reshape(directions.shape)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg in the paper form; in the adaptive form what a single upload says of the gradient."""
        of_fedavg = plain_readings.readings(self, threat, seen, victims)
        if threat.form == "paper" or isinstance(of_fedavg, NotApplicable):
            return of_fedavg
        equations = [
            Reading("equations", tuple(self._equations(o, seen) for o in r.observations if len(o.clients) == 1))
            for r in of_fedavg
        ]
        solvable = [r for r in equations if r.observations]
        return [*of_fedavg, *solvable] if self.options.variant == "code" else solvable or of_fedavg

    def _equations(self, o: Observation, seen: Mapping[int, Seen]) -> Observation:
        product = self.options.variant == "paper"
        plain = PlainGradient(self.task, seen[o.round].down, o.clients)
        lengths = {name: t.norm() for name, t in o.target.items()}
        target = {
            name: torch.stack([length, *[torch.zeros_like(length)] * product]) for name, length in lengths.items()
        }
        return replace(o, target=target, simulate=Equations(plain, o.target, product), output_bias=None)


@dataclass(frozen=True)
class Equations:
    """Simulator: what an upload says of each tensor of a candidate's gradient.

    Attributes:
        gradient: the plain gradient of a candidate batch. upload: u.
        product: whether ⟨u_l, g_l⟩/‖u_l‖ is 0 for the true samples; else the length ‖g_l‖ = ‖u_l‖ alone is known.
    """

    gradient: Simulator
    upload: Tensors
    product: bool

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {name: self._of(g.flatten(), self.upload[name].flatten()) for name, g in self.gradient(x, y).items()}

    def _of(self, g: Tensor, u: Tensor) -> Tensor:
        tiny = torch.finfo(g.dtype).tiny
        length = g.square().sum().clamp_min(tiny).sqrt()
        return torch.stack([length, g @ (u / u.norm().clamp_min(tiny))] if self.product else [length])
