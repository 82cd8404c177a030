"""How many clients are mixed in the step that a round broadcasts: the effective number.

The step d is what the server makes of the uploads x_1, …, x_n, by its rule and whatever else it does. The weight of
client i in number j of it is what j changes by if the client's own number does,

    w_ij = ∂d_j/∂x_ij

A mean has N_i/N everywhere, Krum 1 for one client, and the median 1 for another client in each number. Of weights w the
effective number is the inverse participation ratio (Σ w)²/Σ w²: n if all are equal, 1 if all but one are 0. There are
two of it:

    in a number       the mean over j of (Σ_i |w_ij|)²/Σ_i w_ij²
    in the broadcast  1/Σ_i w_i², of the client's share w_i: the mean over j of |w_ij|/Σ_i |w_ij|

The median has about 1 of the first and n of the second. Weights are taken at the round's own uploads by finite
differences of whole uploads: w_ij is the mean over random signs v of v_j·(d(x + h v e_i) − d(x))_j/h. So no rule needs
a derivative. The harness knows them; no party does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedarena.contracts.transcript import Round
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, same_names, shaped
from fedarena.federation.finished_run import FinishedRun

STEP = 1e-4
"""h, as a share of the standard deviation of a number over the clients: so small that no order of uploads changes."""
PROBES = 4
"""How many random signs the weights are a mean over."""
RELEVANT = 1e-3
"""Weights below this share of a number's largest one count as 0: they are what the other numbers' changes do to it."""


@dataclass(frozen=True)
class MixedClients:
    """The effective numbers of one round.

    Attributes:
        in_number, in_broadcast: see the module's docstring; 0 where the step does not depend on any upload.
        shares: w_i [n], in the order of the participants, which add up to 1.
    """

    in_number: float
    in_broadcast: float
    shares: Tensor


def mixed_clients(finished: FinishedRun, t: int) -> MixedClients:
    """The effective numbers of a round that was written down. The defense must send the model's own parameters up."""
    return effective_numbers(weights_in_step(finished, t).abs())


def effective_numbers(weights: Tensor) -> MixedClients:
    """Of weights w ≥ 0 [n, d]. Numbers in which nobody has a weight do not count."""
    weights = torch.where(weights >= RELEVANT * weights.max(0).values, weights, 0.0)
    used = weights[:, weights.sum(0) > 0]
    if not used.numel():
        return MixedClients(0.0, 0.0, weights.new_zeros(len(weights)))
    shares = (used / used.sum(0)).mean(1)
    return MixedClients(float(participation(used).mean()), float(participation(shares)), shares)


def participation(weights: Tensor) -> Tensor:
    """(Σ_i w_i)²/Σ_i w_i² over the first axis."""
    result: Tensor = weights.sum(0).square() / weights.square().sum(0)
    return result


def weights_in_step(finished: FinishedRun, t: int) -> Tensor:
    """w [n, d] (float64).

    It is 0 in numbers that are the same in all uploads, and in those that are 0 in one, as behind dark pixels and
    inactive units: rules that count signs or sort have no derivative there.
    """
    r = finished.round(t)
    ups = {name: up.double() for name, up in r.ups.items()}
    x = rows(ups)
    spread = torch.where((x != 0).all(0), x.std(0, correction=0), 0.0)
    at = step_of(finished, r)
    signs = Rng(finished.spec.root).child("mixed clients", t)
    base, weight = at(ups), torch.zeros_like(x)
    for probe in range(PROBES):
        for i in range(len(x)):
            v = torch.randint(2, spread.shape, generator=signs.child(probe, i).torch()).to(x) * 2 - 1
            moved = {name: up.clone() for name, up in ups.items()}
            for name, change in shaped(STEP * spread * v, row(ups, 0)).items():
                moved[name][i] += change
            weight[i] += v * (at(moved) - base) / PROBES
    return torch.where(spread > 0, weight / (STEP * spread), 0.0)


def step_of(finished: FinishedRun, r: Round) -> Callable[[Tensors], Tensor]:
    """Uploads → the server's direction [d], with the state and the randomness of the round."""
    defense, (state, sent, cohort, rng) = finished.defense.in_round(r.index), finished.server_in(r)
    extra = {name: t.double() if t.is_floating_point() else t for name, t in r.extra.items()}  # like the uploads
    state = replace(state, extra=extra)

    def step(ups: Tensors) -> Tensor:
        ups = {name: up.double() for name, up in ups.items()}
        with generators_of(rng):
            made = defense.direction(state, sent, ups, cohort, rng)
        return flatten(same_names(made.step, tuple(ups))).double()

    return step
