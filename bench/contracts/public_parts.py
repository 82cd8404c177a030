"""What a party takes away from a message first: parts that everybody knows and that depend on no sample.

A client may multiply each entry of its upload by a number that everybody knows, and add another one:

    u_i = s_i g_i + c_i

where g is the plain upload. This protects nobody. But a search for samples would look at c alone, an attack that reads
ratios would find none, and the label's sign would be lost. So a party that knows the protocol plays it on samples that
are nobody's, beside the plain client. Where s and c explain what it gets, it reads (u − c)/s, and simulates the same.

Uploads of another kind stay as they are: those of other names or shapes, those that are a multiple of g, and those in
which an entry depends on more than the same entry of g.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.simulators import as_batch, images_behind
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, flatten, rows, same_names, shaped, stack, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.local_training import upload
from fedarena.problem.task import Task

PLAYS, MORE = 4, 28
"""Batches on which the protocol is played; and more where s and c explain these, since few make every unit active."""
MULTIPLE = 1e-4
"""The relative error up to which an upload counts as a multiple of the plain one."""
EXPLAINED = 0.02
"""The share of what varies that s and c may leave unexplained: beside a large c little is left of g in float32."""
LEFT_OUT = 1e-6
"""An |s_i| below this share of the largest: the entry says nothing of g."""

WITHOUT: set[bytes] = set()
"""Digests of the first batch's uploads, plain ones included, of what had no public parts in this process. Every attack
and party asks about the same uploads, and they are played on the same batches."""
MOST = 10_000
"""Digests that are kept."""


@dataclass(frozen=True)
class PlainUpload:
    """Simulator: the mean of what plain clients would send, from a candidate batch."""

    task: Task
    params: Tensors
    clients: tuple[int, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        task, counts = self.task, [images_behind(self.task, c) for c in self.clients]
        parts = zip(x.split(counts), y.split(counts), strict=True)
        ups = [upload(task.loss, self.params, as_batch(task, xc, yc), task.schedule) for xc, yc in parts]
        return weighted_mean(stack(ups), torch.tensor([task.sizes[c] for c in self.clients]).to(x))


@dataclass(frozen=True)
class WithoutPublicParts:
    """Simulator: what another one gives, as (u − c)/s.

    Attributes:
        whole: gives u. scale, offset: s and c, like u.
    """

    whole: Simulator
    scale: Tensors
    offset: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.of(self.whole(x, y))

    def of(self, u: Tensors) -> Tensors:
        """(u − c)/s."""
        return {name: (t - self.offset[name]) / self.scale[name] for name, t in u.items()}


def without_public_parts(
    readings: Sequence[Reading] | NotApplicable, defense: Defense, threat: Threat, seen: Mapping[int, Seen]
) -> Sequence[Reading] | NotApplicable:
    """The readings of the adaptive form, each observation without its public parts."""
    if threat.form == "paper" or isinstance(readings, NotApplicable):
        return readings
    return [
        replace(
            r,
            observations=tuple(_without(o, defense.in_round(o.round).task, seen.get(o.round)) for o in r.observations),
        )
        for r in readings
    ]


def _without(o: Observation, task: Task, now: Seen | None) -> Observation:
    model = {name: p.shape for name, p in task.model.named_parameters()}
    if now is None or o.sent is not None or {name: t.shape for name, t in o.target.items()} != model:
        return o
    known = now.params if now.params is not None else now.down
    if not known.keys() >= model.keys() or {name: known[name].shape for name in model} != model:
        return o
    found = _public_parts(o, PlainUpload(task, same_names(known, tuple(model)), o.clients), task)
    if found is None:
        return o
    scale, offset = (shaped(t.to(flatten(o.target)), o.target) for t in found)
    simulate = WithoutPublicParts(o.simulate, scale, offset)
    shown = o.estimate is not None and task.schedule.fedsgd and o.estimate.keys() == o.target.keys()
    return replace(
        o,
        target=simulate.of(o.target),
        simulate=simulate,
        rough=None if o.rough is None else WithoutPublicParts(o.rough, scale, offset),
        estimate=simulate.of(o.estimate) if shown and o.estimate is not None else o.estimate,
        noise_std=o.noise_std / float(found[0].abs().median()),
    )


def _public_parts(o: Observation, plain: Simulator, task: Task) -> tuple[Tensor, Tensor] | None:
    """s and c [d] in double precision; None where there are none, or where they do not explain the upload."""
    generator = torch.Generator().manual_seed(0)
    sent, plainly = _played(o, plain, task, 1, generator)
    if _is_multiple(sent[0], plainly[0]) or (first := _digest(sent, plainly)) in WITHOUT:
        return None
    for plays in (PLAYS - 1, MORE):
        more, plainly_more = _played(o, plain, task, plays, generator)
        sent, plainly = torch.cat([sent, more]), torch.cat([plainly, plainly_more])
        if (found := _fitted(sent, plainly)) is None:
            if len(WITHOUT) >= MOST:
                WITHOUT.clear()
            WITHOUT.add(first)
            return None
    return found


def _digest(*tensors: Tensor) -> bytes:
    return hashlib.blake2b(b"".join(t.cpu().numpy().tobytes() for t in tensors)).digest()


def _played(
    o: Observation, plain: Simulator, task: Task, plays: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """What is sent, and what plain clients would send, of batches of noise of any brightness [plays, d]."""
    like, names = next(iter(o.target.values())), tuple(o.target)
    batches = [_nobodys(o, task, like, generator) for _ in range(plays)]
    x, y = (torch.stack(parts) for parts in zip(*batches, strict=True))

    def played(simulate: Simulator) -> Tensor:
        """All plays at once; a single one as it is, which is faster. (vmap prints objects, and no functions.)"""
        each = simulate(x[0], y[0]) if plays == 1 else vmap(lambda x, y: simulate(x, y), randomness="same")(x, y)
        each = same_names(each, names)
        return (flatten(each)[None] if plays == 1 else rows(each)).double()

    return played(o.simulate), played(plain)


def _nobodys(o: Observation, task: Task, like: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A batch of noise of some brightness."""
    x = torch.rand(o.images, *task.input_shape, generator=generator)
    x = (x * torch.rand(o.images, *[1] * len(task.input_shape), generator=generator)).to(like)
    y = torch.rand(o.images, *[task.n_classes] * (task.n_classes > 0), generator=generator).to(like)
    return x, y / y.sum(1, keepdim=True) if task.n_classes else y


def _is_multiple(u: Tensor, g: Tensor) -> bool:
    """Whether u = a g for a number a; also where one of them is 0 or not finite."""
    if not bool(torch.isfinite(u).all() and torch.isfinite(g).all() and g.any() and u.any()):
        return True
    return bool((u - (u @ g) / (g @ g) * g).norm() <= MULTIPLE * u.norm())


def _fitted(u: Tensor, g: Tensor) -> tuple[Tensor, Tensor] | None:
    """s and c [d] from uploads and plain uploads [plays, d]."""
    moved, moved_g = u - u.mean(0), g - g.mean(0)
    scale = torch.ones_like(u[0])
    if (moved - moved_g).norm() > EXPLAINED * moved_g.norm():
        varies = moved_g.square().sum(0)
        scale = torch.where(varies > 0, (moved * moved_g).sum(0) / varies.clamp_min(torch.finfo(u.dtype).tiny), 1.0)
        if not (moved - scale * moved_g).norm() <= EXPLAINED * moved.norm():
            return None
        scale = torch.where(scale.abs() < LEFT_OUT * scale.abs().max(), 1.0, scale)
    said = moved.square().sum(0) > 0
    offset = torch.where(said, (u - scale * g).mean(0), u.mean(0))
    if (scale - 1).abs().max() <= MULTIPLE and offset.norm() <= MULTIPLE * u.norm():
        return None
    return scale, offset
