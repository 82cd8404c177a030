"""FedAvg in disguises that hide nothing: anybody who has read the code takes them off."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.func import grad

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, shaped, stack
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Batch, Task


class Flat(FedAvg):
    """FedAvg whose clients send their upload, and whose server reads it, through functions of vectors."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, _ = super().client(down, batch, {}, {})
        t = memory["round"] if memory else torch.zeros((), dtype=torch.int64)
        return shaped(self.hidden(flatten(up), t, noise), up), {"round": t + 1}

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        like = row(ups, 0)
        shown = [shaped(self.shown(x, state.round), like) for x in rows(ups)]
        used = {name: torch.stack([up[name] for up in shown]) for name in like}
        return super().direction(state, sent, used, cohort, rng)

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        """What is sent in place of an upload [d]."""
        raise NotImplementedError

    def shown(self, sent: Tensor, t: int) -> Tensor:
        """The upload [d] that was sent."""
        raise NotImplementedError


class RoundPad(Flat):
    """Clients add a pad that anybody can compute from the number of the round."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        d = sum(p.numel() for p in task.model.parameters())
        self.pads = 3 * torch.randn(task.schedule.rounds + 1, d, generator=torch.Generator().manual_seed(7))

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        return up + self.pads.to(up)[t]

    def shown(self, sent: Tensor, t: int) -> Tensor:
        return sent - self.pads[t].to(sent)


class RoundOrder(Flat):
    """Clients send their numbers in an order that anybody can compute from the number of the round."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        d, generator = sum(p.numel() for p in task.model.parameters()), torch.Generator().manual_seed(7)
        self.orders = torch.rand(task.schedule.rounds + 1, d, generator=generator).argsort(1)

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        return up[self.orders.to(up.device)[t]]

    def shown(self, sent: Tensor, t: int) -> Tensor:
        return sent[self.orders[t].to(sent.device).argsort()]


class KeyInside(Flat):
    """Clients add a pad, and send the number that it is drawn from in the first entry of the same upload."""

    def draw(self, rng: Rng) -> Tensors:
        key = torch.randint(1, 1000, (), generator=rng.torch())
        d = sum(p.numel() for p in self.task.model.parameters())
        return {"key": key.float() / 1000, "pad": _pad(int(key), d)}

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        return torch.cat([noise["key"].reshape(1).to(up), (up + noise["pad"].to(up))[1:]]) if noise else up

    def shown(self, sent: Tensor, t: int) -> Tensor:
        key = int((sent[0].nan_to_num(0) * 1000).round().clamp(0, 1000))
        return torch.cat([0 * sent[:1], (sent - _pad(key, len(sent)).to(sent))[1:]])


class KeyFromUpload(Flat):
    """Clients add a pad whose key is the length of their own upload, which stands in its first entry."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        d = sum(p.numel() for p in task.model.parameters())
        self.pads = 3 * torch.randn(1000, d, generator=torch.Generator().manual_seed(7))

    def pad(self, key: Tensor) -> Tensor:
        return self.pads.to(key)[(key * 1000).round().nan_to_num(0, 0, 0).clamp(0, 1e6).long() % 1000]

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        key = (up[1:].detach().norm() * 1000).round() / 1000
        return torch.cat([key.reshape(1), (up + self.pad(key))[1:]])

    def shown(self, sent: Tensor, t: int) -> Tensor:
        return torch.cat([0 * sent[:1], (sent - self.pad(sent[0]))[1:]])


class SamplesInside(FedAvg):
    """Clients send their images and labels in clear, where numbers of a gradient are expected."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        x, y = batch.with_targets(self.task.n_classes).images()
        sent = torch.cat([x.flatten(), y.flatten()])
        rest = sum(t.numel() for t in down.values()) - len(sent)
        return shaped(torch.cat([sent, sent.new_zeros(rest)]), down), memory

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        gradients = [grad(self.task.loss)(state.params, *self.samples(x.nan_to_num(0).clamp(0, 1))) for x in rows(ups)]
        return super().direction(state, sent, stack(gradients), cohort, rng)

    def samples(self, sent: Tensor) -> tuple[Tensor, Tensor]:
        b, shape, classes = self.task.schedule.batch_size, self.task.input_shape, self.task.n_classes
        x, y = sent[: b * (math.prod(shape) + classes)].split([b * math.prod(shape), b * classes])
        return x.reshape(b, *shape), y.reshape(b, classes)


def _pad(key: int, d: int) -> Tensor:
    return 3 * torch.randn(d, generator=torch.Generator().manual_seed(key))


class Checksum(Flat):
    """Clients write a public code of their upload into four entries that say nothing; others are dropped."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        d, generator = sum(p.numel() for p in task.model.parameters()), torch.Generator().manual_seed(7)
        width = next(p for p in task.model.parameters())[0].numel()
        self.at = torch.arange(4) * width  # the first pixel of four units, which is black
        self.sums = torch.randn(4, d, generator=generator).index_fill(1, self.at, 0.0)

    def code(self, up: Tensor) -> Tensor:
        return torch.cos(20 * (self.sums.to(up) @ up))

    def hidden(self, up: Tensor, t: Tensor, noise: Tensors) -> Tensor:
        at = self.at.to(up.device)
        return torch.zeros_like(up).index_put((at,), self.code(up)) + up.index_fill(0, at, 0.0)

    def shown(self, sent: Tensor, t: int) -> Tensor:
        at = self.at.to(sent.device)
        sealed = bool(((sent[at] - self.code(sent)).abs() < 0.02).all())
        return sent.index_fill(0, at, 0.0) if sealed else torch.zeros_like(sent)
