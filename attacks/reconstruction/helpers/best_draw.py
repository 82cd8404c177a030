"""The best of several draws: a server that draws seeds or masks for a broadcast keeps what serves it best.

A protocol whose broadcast carries a seed lets its server choose among seeds, but not among what they expand to. So the
server draws N messages of the same model. It plays each on a sample of its own, takes the affine map A of what it would
read, and sends the message that leaves least of its samples' variance C open:

    1 − tr(C Aᵀ (A C Aᵀ + λI)⁻¹ A C) / tr C
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.affine_play import plays_of
from fedarena.attacks.reconstruction.helpers.image_distribution import ImageDistribution, prior_of
from fedarena.contracts.active_inference import Message, Opportunity
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import as_batch
from fedarena.contracts.transcript import Seen
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, stack
from fedarena.core.threat import NotApplicable, Threat

PARTY = Threat("server", "adaptive")
"""Who reads what comes back."""


def best_message(
    opportunity: Opportunity, params: Tensors, draws: int, own: Tensor | None, rng: Rng
) -> Message | NotApplicable:
    """A broadcast of a model: the best of so many draws, or why there is no choice.

    Args:
        own: samples [m, *input_shape] by which draws are judged; None: by the least norm.
    """
    first = opportunity.message(params, rng.child("broadcast"))
    if draws == 1:
        return first
    more = [opportunity.message(params, rng.child("broadcast", i)) for i in range(1, draws)]
    if all(_same(message, first) for message in more):
        return NotApplicable("the protocol's server draws nothing for a broadcast, so that there is no draw to choose")
    prior, start = prior_of(own, torch.Size(opportunity.protocol.task.input_shape).numel())
    judged = [left_open(opportunity, message, prior, start, rng.child("play")) for message in (first, *more)]
    reasons = [value for value in judged if isinstance(value, NotApplicable)]
    if reasons:
        return reasons[0]
    return min(zip(judged, range(draws), (first, *more), strict=True), key=lambda one: one[:2])[2]


def left_open(
    opportunity: Opportunity, message: Message, prior: ImageDistribution, start: Tensor, rng: Rng
) -> float | NotApplicable:
    """The share of the variance of samples that stays after what comes back of a message, mean over two labels.

    Args:
        start: a sample [d], around which what comes back is taken as affine.
    """
    seen = rehearsed(opportunity, message, rng)
    if isinstance(seen, NotApplicable):
        return seen
    task = opportunity.protocol.task
    view = View(threat=PARTY, reading="", input_shape=task.input_shape, n_classes=task.n_classes, observations=(seen,))
    plays = plays_of(view, seen, start, rng.child("groups"))[:2]
    maps = [play.affine(start.to(play.group.device)) for play in plays]
    return sum(prior.left_open(near, variance) for _, near, variance in maps) / len(maps)


def rehearsed(opportunity: Opportunity, message: Message, rng: Rng) -> Observation | NotApplicable:
    """What the server would read of the victim, if all participants held a mid-grey sample of class 0."""
    protocol, state, clients = opportunity.protocol, opportunity.state, opportunity.participants
    if opportunity.summed:
        return NotApplicable("a secure sum shows no single sample, for which draws are judged")
    task = protocol.task
    like = next(iter(message.params.values()))
    ups = []
    for client in clients:
        n = task.schedule.taken(task.sizes[client])
        x = torch.full((n, *task.input_shape), 0.5).to(like)
        y = torch.zeros(n, dtype=torch.int64 if task.n_classes else x.dtype, device=like.device)
        drawn = protocol.draw(rng.child("noise", client))
        ups.append(protocol.client(message.down, as_batch(task, x, y), {}, drawn)[0])
    now = Seen(
        index=state.round,
        participants=clients,
        down=message.down,
        ups=stack(ups),
        params=message.params,
        secret=message.secret,
        extra=state.extra,
        victim=opportunity.victim,
    )
    readings = protocol.readings(PARTY, {state.round: now}, [state.round])
    return readings if isinstance(readings, NotApplicable) else readings[0].observations[0]


def _same(message: Message, other: Message) -> bool:
    return all(torch.equal(message.down[name], t) for name, t in other.down.items())
