"""What a server keeps of its clients' uploads, to predict each next one and to score how far off the prediction is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.defenses.aggregators.hessian import hessian_times
from fedarena.defenses.aggregators.lengths import lengths

PREFIX = "consistency of "
"""Of the names in a rule's memory."""
HUGE = 1e300
"""A distance that overflows."""


@dataclass(frozen=True)
class Past:
    """The past of c clients and of the model, which starts at 0 here and steps by minus the aggregate.

    Attributes:
        sent, place: [c, d], each client's last upload, and where the model was at that time.
        seen: [c], 1 for clients that took part before.
        scores: [c, N] float64, each client's last distances, oldest first; NaN where there is none yet.
        steps, changes: [≤ N, d], the model's last steps and the changes of the aggregate along them, oldest first.
        now: [d], where the model is.
        last: [≤ 1, d], the last aggregate.
    """

    sent: Tensor
    place: Tensor
    seen: Tensor
    scores: Tensor
    steps: Tensor
    changes: Tensor
    now: Tensor
    last: Tensor

    @staticmethod
    def of(memory: Tensors, x: Tensor, clients: int, window: int) -> Past:
        """The past that a memory holds, with room for so many clients; of a new server without one."""
        nothing = x.new_zeros(0, x.shape[1])
        past = Past(
            sent=nothing,
            place=nothing,
            seen=torch.zeros(0),
            scores=torch.zeros(0, window, dtype=torch.float64),
            steps=nothing,
            changes=nothing,
            now=x.new_zeros(x.shape[1]),
            last=nothing,
        )
        own = {f.name: memory[PREFIX + f.name] for f in fields(Past) if PREFIX + f.name in memory}
        past = replace(past, **own)
        more = max(0, clients - len(past.seen))
        return replace(
            past,
            sent=torch.cat([past.sent, x.new_zeros(more, x.shape[1])]),
            place=torch.cat([past.place, x.new_zeros(more, x.shape[1])]),
            seen=torch.cat([past.seen, torch.zeros(more)]),
            scores=torch.cat([past.scores, torch.full((more, window), torch.nan, dtype=torch.float64)]),
        )

    def memory(self) -> dict[str, Tensor]:
        """The past as a rule's memory."""
        return {PREFIX + f.name: getattr(self, f.name) for f in fields(self)}

    def scored(self, x: Tensor, senders: tuple[int, ...]) -> Past:
        """With this round's distances of the senders that took part before, once the model made N steps."""
        who = [i for i, client in enumerate(senders) if self.seen[client] > 0]
        window = self.scores.shape[1]
        if len(self.steps) < window or not who:
            return self
        at = [senders[i] for i in who]
        moved = hessian_times(self.steps, self.changes, self.now - self.place[at])
        away = lengths(x[who] - self.sent[at] - moved.to(x)).cpu().nan_to_num(nan=HUGE, posinf=HUGE)
        total = away.sum()
        share = away / total if total > 0 else away
        scores = self.scores.clone()
        scores[at] = torch.cat([scores[at, 1:], share[:, None]], dim=1)
        return replace(self, scores=scores)

    def moved(self, x: Tensor, senders: tuple[int, ...], aggregate: Tensor) -> Past:
        """After a round: what the senders sent, and where the model goes."""
        sent, place, seen = self.sent.clone(), self.place.clone(), self.seen.clone()
        at = list(senders)
        sent[at], place[at], seen[at] = x, self.now.expand_as(x), 1
        window = self.scores.shape[1]
        return replace(
            self,
            sent=sent,
            place=place,
            seen=seen,
            steps=torch.cat([self.steps, -self.last])[-window:],
            changes=torch.cat([self.changes, aggregate - self.last])[-window:] if len(self.last) else self.changes,
            now=self.now - aggregate,
            last=aggregate[None],
        )
