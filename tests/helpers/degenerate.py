"""Defenses that are worth nothing, each in its own way: no board may put one of them above a sound one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import grad

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.card import Card
from fedarena.core.method_caches import forget_methods
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, stack
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Auxiliary, Batch, Task
from helpers.disguises import Checksum, KeyFromUpload, KeyInside, RoundOrder, RoundPad


class SendingZeros(FedAvg):
    """Clients send zeros, and the server never moves."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        return {name: torch.zeros_like(t) for name, t in down.items()}, memory


class Constant(SendingZeros):
    """It deploys a model that always names class 0."""

    def deployed(self, state: State) -> Tensors:
        bias = self.task.output_bias
        model = {name: torch.zeros_like(t) for name, t in state.params.items()}
        assert bias is not None
        model[bias][0] = 1.0
        return model


class ServerOnly(SendingZeros):
    """Clients send zeros, and the server trains on its own two samples of each class."""

    @classmethod
    def holds(cls, options: Any) -> Auxiliary:
        return Auxiliary(2)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        assert state.auxiliary is not None
        return Direction(grad(self.task.loss)(state.params, *state.auxiliary.images()))


class Dropping(FedAvg):
    """The server uses the upload of the first client of a round and drops all others."""

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        used = torch.zeros(len(cohort.clients))
        used[0] = 1.0
        return Direction(row(ups, 0), verdict={"used": used})


class TinyNoise(FedAvg):
    """Clients add noise that hides nothing, N(0, 0.001²), and promise nothing."""

    def draw(self, rng: Rng) -> Tensors:
        generator = rng.torch()
        return {name: torch.randn(p.shape, generator=generator) for name, p in self.task.model.named_parameters()}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, {})
        return {name: t + 0.001 * noise[name] if noise else t for name, t in up.items()}, memory


class _Sometimes(TinyNoise):
    """Clients count the rounds in what they remember. Who simulates an upload simulates one of FedAvg."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, _ = FedAvg.client(self, down, batch, {}, {})
        t = memory["round"] if memory else torch.zeros(())
        return (self.sent(up, t / self.task.schedule.rounds, noise) if noise else up), {"round": t + 1}

    def sent(self, up: Tensors, share: Tensor, noise: Tensors) -> Tensors:
        """What is sent after this share of the training."""
        raise NotImplementedError


class LateUploads(_Sometimes):
    """Clients send zeros in the first three eighths of the training, and FedAvg's uploads later."""

    def sent(self, up: Tensors, share: Tensor, noise: Tensors) -> Tensors:
        return scale_by(up, (share >= 0.375).to(torch.float32))


class EarlyNoise(_Sometimes):
    """Clients add noise, N(0, 1), in the first half of the training, and nothing later."""

    def sent(self, up: Tensors, share: Tensor, noise: Tensors) -> Tensors:
        early = (share < 0.5).to(torch.float32)
        return {name: t + early * noise[name] for name, t in up.items()}


class Favourite(TinyNoise):
    """Client 1 alone adds noise, N(0, 1), where all clients take part in every round."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        return FedAvg.client(self, down, batch, {}, {})

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = Defense.clients(self, down, batches, memories, noises)
        if len(batches) > 1:
            ups = {name: torch.cat([t[:1], t[1:2] + noises[1][name], t[2:]]) for name, t in ups.items()}
        return ups, after


class RareUploads(TinyNoise):
    """Clients send zeros in nine rounds of ten, by chance, and ten times FedAvg's upload in the others."""

    def draw(self, rng: Rng) -> Tensors:
        return super().draw(rng) | {"chance": torch.rand((), generator=rng.child("chance").torch())}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = FedAvg.client(self, down, batch, memory, {})
        return (self.sent(up, (noise["chance"] < 0.1).to(torch.float32), noise) if noise else up), memory

    def sent(self, up: Tensors, now: Tensor, noise: Tensors) -> Tensors:
        """What is sent; `now` is 1 in the rounds in which something is."""
        return scale_by(up, 10 * now)


class RareSilence(RareUploads):
    """Clients add noise, N(0, 0.3²), in nine rounds of ten, by chance, and nothing in the others."""

    def sent(self, up: Tensors, now: Tensor, noise: Tensors) -> Tensors:
        return {name: t + 0.3 * (1 - now) * noise[name] for name, t in up.items()}


class GivenAway(Favourite):
    """All clients but the last one of a round add noise, N(0, 3²)."""

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = Defense.clients(self, down, batches, memories, noises)
        hidden = [row(ups, i) for i in range(len(batches) - 1)]
        hidden = [
            {name: t + 3 * noise[name] for name, t in up.items()} for up, noise in zip(hidden, noises, strict=False)
        ]
        return stack([*hidden, row(ups, len(batches) - 1)]), after


def scale_by(tensors: Tensors, factor: Tensor) -> Tensors:
    return {name: factor * t for name, t in tensors.items()}


class SilentWhenFew(FedAvg):
    """Clients of federations of less than 15 send zeros, and the server trains alone; larger ones are FedAvg."""

    sums = True

    @classmethod
    def holds(cls, options: Any) -> Auxiliary:
        return Auxiliary(2)

    def few(self) -> bool:
        return len(self.task.sizes) < 15

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return {name: torch.zeros_like(t) if self.few() else t for name, t in up.items()}, memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = super().clients(down, batches, memories, noises)
        return {name: torch.zeros_like(t) if self.few() else t for name, t in ups.items()}, after

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        return (ServerOnly.direction if self.few() else FedAvg.direction)(self, state, sent, ups, cohort, rng)


class FewAndLabels(SilentWhenFew):
    """As `SilentWhenFew`; clients of larger federations leave out the output layer, from which labels are read."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return {name: torch.zeros_like(t) if name in self.left_out() else t for name, t in up.items()}, memory

    def left_out(self) -> list[str]:
        return [name for name, _ in self.task.model.named_parameters()][-2:]

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        found, own = (
            super().direction(state, sent, ups, cohort, rng),
            ServerOnly.direction(self, state, sent, ups, cohort, rng),
        )
        return replace(found, step={**found.step, **{name: own.step[name] for name in self.left_out()}})


class RandomLabels(FedAvg):
    """Clients train on labels that are drawn by chance."""

    def draw(self, rng: Rng) -> Tensors:
        labels = torch.randint(self.task.n_classes, (self.task.schedule.batch_size,), generator=rng.torch())
        return {"labels": labels}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        y = noise["labels"][None, : batch.y.shape[1]] if noise else batch.y
        return super().client(down, Batch(batch.x, y), memory, {})


class Disguised(FedAvg):
    """Clients send s·g + c with numbers s and c that everybody knows, and the server takes them away."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        generator, named = torch.Generator().manual_seed(7), task.model.named_parameters()
        self.drawn = {name: torch.randn(2, *p.shape, generator=generator) for name, p in named}

    def disguise(self, like: Tensors) -> tuple[Tensors, Tensors]:
        drawn = {name: self.drawn[name].to(t) for name, t in like.items()}
        return {n: t[0].sign() * t[0].exp() for n, t in drawn.items()}, {n: 100 * t[1] for n, t in drawn.items()}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        s, c = self.disguise(down)
        return {name: s[name] * t + c[name] for name, t in up.items()}, memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = super().clients(down, batches, memories, noises)
        s, c = self.disguise(down)
        return {name: s[name] * t + c[name] for name, t in ups.items()}, after

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        s, c = self.disguise(state.params)
        return super().direction(state, sent, {n: (t - c[n]) / s[n] for n, t in ups.items()}, cohort, rng)


class OneBit(FedAvg):
    """Clients send the signs of their gradients, at a thousandth."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, {})
        return {name: 0.001 * t.sign() for name, t in up.items()}, memory


class Silent(FedAvg):
    """Its uploads are FedAvg's, and it says that no party can read anything of them."""

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return NotApplicable("there is nothing to see")


class Misleading(FedAvg):
    """Its uploads are FedAvg's, and it gives parties noise of the same shape to read."""

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        true = super().readings(threat, seen, victims)
        if isinstance(true, NotApplicable):
            return true
        return [replace(r, observations=tuple(_hidden(o) for o in r.observations)) for r in true]


def _hidden(true: Observation) -> Observation:
    """The observation with noise in place of all that was seen."""
    generator = Rng(true.round).torch()
    noise = {name: torch.randn(t.shape, generator=generator) for name, t in true.target.items()}
    return replace(true, target=noise, estimate=noise)


CLASSES: Mapping[str, type[Defense]] = {
    "constant-model": Constant,
    "ignores-clients": ServerOnly,
    "drops-uploads": Dropping,
    "tiny-noise": TinyNoise,
    "silent-when-few": SilentWhenFew,
    "random-labels": RandomLabels,
    "one-bit": OneBit,
    "disguised": Disguised,
    "late-uploads": LateUploads,
    "favourite": Favourite,
    "early-noise": EarlyNoise,
    "rare-uploads": RareUploads,
    "rare-silence": RareSilence,
    "given-away": GivenAway,
    "silent": Silent,
    "misleading": Misleading,
    "few-and-labels": FewAndLabels,
    "round-pad": RoundPad,
    "round-order": RoundOrder,
    "key-inside": KeyInside,
    "checksum": Checksum,
    "key-from-upload": KeyFromUpload,
}
CARDS = {
    name: Card(name=name, kind="defense", title=str(cls.__doc__).splitlines()[0], target=cls)
    for name, cls in CLASSES.items()
}
for _name, _card in CARDS.items():
    globals()[_name.replace("-", "_").upper()] = _card


def install(folder: Path, names: Sequence[str] = tuple(CLASSES)) -> Path:
    """A folder that, on the path of Python, makes these defenses known like those of an installed package."""
    info = folder / "degenerate-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: degenerate\nVersion: 1\n")
    lines = [f"{name} = {__name__}:{name.replace('-', '_').upper()}" for name in names]
    (info / "entry_points.txt").write_text("[fedarena.defenses]\n" + "\n".join(lines) + "\n")
    return folder


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """These defenses are known as long as the block runs."""
    sys.path.insert(0, str(install(folder)))
    forget_methods()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        forget_methods()
