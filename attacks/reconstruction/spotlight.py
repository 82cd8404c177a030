"""Spotlight: corrupted clients poison a round so that the broadcast after it shows their victim, and read that (SPEAR).

They know the server's rule R and play it. Of the poisons U below they send the one whose step comes nearest to the
victim's upload v, in the mean over what the others X may have sent:

    U* = argmin_U E_X ‖R(X ∪ U) − v‖/‖v‖

    own     what the protocol has them send
    far     uploads far away from all others, each in a direction of its own: a rule that leaves them out steps by
            honest clients alone
    around  v ± ε in pairs, with v in the middle: a rule that picks an upload with near neighbours picks v
    split   m ± s in each number, with k of them above. k is chosen for each number, so that R comes nearest to v:
            a median moves to another client's value

Omniscient attackers have X and v. Others let their own samples stand for those of honest clients. Poisons are made for
one play and compared on further ones. Under a mean nothing is to be gained, as they take their own part off.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.spotlight import Options
from fedarena.attacks.reconstruction.spear import Spear
from fedarena.contracts.curious_poisoning import CuriousPoisoning, Turn
from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.contracts.simulators import as_batch, images_behind
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, same_names, shaped, stack
from fedarena.core.threat import Knowledge, NotApplicable
from fedarena.problem.task import Batch

FAR = 100.0
"""How far away from the others, as a multiple of the longest own upload."""
NEAR = 1e-3
"""How far around the victim's upload, as a share of its length."""
SIDES = 10.0
"""How far to either side, as a multiple of the distance between the others' values."""


class Spotlight(CuriousPoisoning, Spear):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.spotlight.Options`."""

    options: Options
    name: ClassVar[str] = "spotlight"

    @property
    def knows(self) -> Knowledge:
        return "omniscient" if self.options.knows == "omniscient" else "own"

    def craft(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
        if turn.protocol.takes_mean:
            return turn.own
        plays = self._plays(turn, rng)
        made = poisons(turn, plays[0], rng)
        judged = plays[1:] or plays

        def off(sent: Tensor) -> float:
            return fmean(relative(step(turn, others, sent, rng), others[_place(turn)]) for others in judged)

        best = min(made.values(), key=off)
        return shaped(best, row(turn.own, 0))

    def _plays(self, turn: Turn, rng: Rng) -> list[Tensor]:
        """What the honest clients send [n − f, d]: as known, or as often as `plays` from own samples."""
        if turn.honest:
            return [rows(turn.honest)]
        return [stand_ins(turn, rng.child("play", i)) for i in range(self.options.plays)]


def poisons(turn: Turn, others: Tensor, rng: Rng) -> Mapping[str, Tensor]:
    """Name → uploads [f, d], for the others' uploads [n − f, d]."""
    own, v = rows(turn.own), others[_place(turn)]
    noise = torch.randn(own.shape, generator=rng.child("directions").torch()).to(own)
    units = noise / noise.norm(dim=1, keepdim=True)
    pairs = units.repeat_interleave(2, 0)[: len(own)]
    signs = 1 - 2 * (torch.arange(len(own)) % 2).to(own)
    return {
        "own": own,
        "far": own.mean(0) + FAR * own.norm(dim=1).max() * units,
        "around": v + NEAR * v.norm() * signs[:, None] * pairs,
        "split": split(turn, others, rng),
    }


def split(turn: Turn, others: Tensor, rng: Rng) -> Tensor:
    """Uploads [f, d] on either side of the others' values, as many above in each number as bring the step nearest."""
    f, v = len(turn.clients), others[_place(turn)]
    middle, side = others.mean(0), SIDES * (others.max(0).values - others.min(0).values)
    tried = []
    for k in range(f + 1):
        above = torch.where(torch.arange(f)[:, None].to(others.device) < k, 1.0, -1.0).to(others)
        sent = middle + above * side
        tried.append((sent, (step(turn, others, sent, rng) - v).abs()))
    best = torch.stack([off for _, off in tried]).argmin(0)
    return torch.stack([sent for sent, _ in tried]).gather(0, best.expand(1, f, len(v))).squeeze(0)


def stand_ins(turn: Turn, rng: Rng) -> Tensor:
    """What honest clients may send [n − f, d]: the protocol's uploads of own samples."""
    protocol, ups = turn.protocol, []
    for client in turn.others:
        x, y = turn.data.draw(images_behind(protocol.task, client), rng.child(client))
        ups.append(protocol.client(turn.down, as_batch(protocol.task, x, y), {}, {})[0])
    return rows(stack([same_names(up, tuple(turn.own)) for up in ups]))


def step(turn: Turn, others: Tensor, sent: Tensor, rng: Rng) -> Tensor:
    """What the server makes of uploads, [d], as far as it can be played: without its memory and with own samples."""
    protocol, like = turn.protocol, row(turn.own, 0)
    place = dict(zip((*turn.others, *turn.clients), (*others, *sent), strict=True))
    ups = shaped(torch.stack([place[client] for client in turn.participants]), like)
    auxiliary = None
    if protocol.rule is not None and protocol.rule.auxiliary:
        x, y = turn.data.draw(protocol.rule.auxiliary * protocol.task.n_classes, rng.child("reference"))
        auxiliary = Batch(x[None], y[None])
    sizes = others.new_tensor([float(protocol.task.sizes[client]) for client in turn.participants])
    state, cohort = State(turn.down, round=turn.round, auxiliary=auxiliary), Cohort(turn.participants, sizes)
    made = protocol.direction(state, Broadcast(turn.down), ups, cohort, rng.child("rule"))
    return flatten(same_names(made.step, tuple(like)))


def relative(a: Tensor, v: Tensor) -> float:
    """‖a − v‖/‖v‖."""
    return float((a - v).norm() / v.norm().clamp_min(torch.finfo(v.dtype).tiny))


def _place(turn: Turn) -> int:
    """The victim's row among the others."""
    return turn.others.index(turn.victim)
