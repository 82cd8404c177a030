"""Loss differences by forward passes alone: the client step of BAFFLE (Feng et al. 2023, Algorithm 1, lines 11 and 12)
for many clients that stand at the same parameters.

    forward     ΔL_{c,k} = L(W + σ z_k; D_c) − L(W; D_c)               (Eq. 1)
    central     ΔL_{c,k} = L(W + σ z_k; D_c) − L(W − σ z_k; D_c)       (Eq. 2)

For each k the perturbed parameters are formed once, in one buffer, and all clients' samples pass through a copy of the
model whose parameters are views of that buffer. Compared with a loop over clients and directions this saves:

- passing the parameters at every call;
- torch's `max_pool2d`, which computes what only a backward pass needs (`fedarena.problem.client_steps.pooling`);
- the inputs of activations, which are overwritten where possible (`fedarena.problem.client_steps.overwriting`);
- converting the layout of convolutions' inputs and outputs: the kernels lie in memory with the channels last, and their
  outputs follow (not in models with group norms, which are slow on that layout);
- the layers before the first parameter (preprocessing, frozen features), whose output no perturbation changes.

Small chains of dense layers take several directions at once (`fedarena.defenses.baffle.chained_forward_passes`), unless
the number of samples at a time is limited. Nothing is stored for a backward pass, and only the size of the result
depends on K.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedarena.core.errors import UserError
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.tensors import flatten, nbytes
from fedarena.defenses.baffle import chained_forward_passes as chained_forwards
from fedarena.problem.client_steps import overwriting, pooling
from fedarena.problem.client_steps.chain import Dense, chain_of
from fedarena.problem.loss import Criterion
from fedarena.problem.task import Batch, Task

PIECE = 64
"""Samples at a time in models with convolutions: the activations of more do not fit into the cache."""

OWN = ("torch.nn.", "fedarena.models.")
"""Packages whose modules are known: whether their samples depend on each other is known, too."""


@dataclass(frozen=True)
class Differencing:
    """How loss differences are computed.

    Attributes:
        sigma: σ.
        scheme: forward | central.
        dtype: number format of weights, activations and loss.
    """

    sigma: float
    scheme: str
    dtype: torch.dtype


def differences(
    task: Task,
    params: Mapping[str, Tensor],
    batches: Sequence[Batch],
    directions: Iterator[Tensor],
    k: int,
    how: Differencing,
    rows: int | None = None,
) -> Tensor:
    """ΔL_{c,1} … ΔL_{c,K} under the task's loss [clients, K], in the format of `how`.

    Args:
        task: gives the model.
        params: W by name.
        batches: one a client.
        directions: gives z_1 … z_K [n], n numbers in the order of the model's parameters; not read further.
        k: K.
        how: how a difference is computed.
        rows: the most samples at a time; None: as many as are fast.

    Raises:
        UserError: fewer rows than a client has samples, in a model whose samples depend on each other.
    """
    device = next(iter(params.values())).device
    # Created outside of inference mode, because callers may differentiate what they compute from it.
    results = torch.empty(len(batches), k, dtype=how.dtype, device=device)
    n = sum(p.numel() for _, p in task.model.named_parameters())
    # A limit on samples limits memory, and several directions at once would take several times as much.
    chain = chain_of(task.model, len(task.input_shape)) if rows is None else None
    together = chained_forwards.group_size(n, how.dtype)
    with torch.inference_mode():
        if chain is not None and together > 1:
            _chained(task, chain, params, batches, directions, how, results, together)
        else:
            network = _Perturbed(task.model, params, how.dtype)
            losses = _Losses(
                network,
                criterion=task.criterion,
                apart=separate(task.model),
                batches=batches,
                dtype=how.dtype,
                rows=rows,
            )
            _one_by_one(network, losses, directions, how, results)
    return results


def _one_by_one(
    network: _Perturbed, losses: _Losses, directions: Iterator[Tensor], how: Differencing, results: Tensor
) -> None:
    """Fills `results`, one direction at a time."""
    if how.scheme == "forward":
        network.stand()
        here = losses()
    for column in results.unbind(1):
        z = next(directions)
        network.move(z, how.sigma)
        if how.scheme == "forward":
            del z  # nothing but the perturbed parameters is held during a forward pass
            torch.sub(losses(), here, out=column)
        else:
            there = losses()
            network.move(z, -how.sigma)
            del z
            torch.sub(there, losses(), out=column)


def _chained(
    task: Task,
    chain: Sequence[Dense],
    params: Mapping[str, Tensor],
    batches: Sequence[Batch],
    directions: Iterator[Tensor],
    how: Differencing,
    results: Tensor,
    together: int,
) -> None:
    """Fills `results`, several directions at a time."""
    like = {name: params[name] for name, _ in task.model.named_parameters()}
    w = flatten(like).to(results.dtype)
    images = [batch.images() for batch in batches]
    counts = [len(y) for _, y in images]
    x, y = torch.cat([x for x, _ in images]).to(results.dtype), torch.cat([y for _, y in images])
    x, y = _parted(task.model)[0](x).flatten(1), y.to(results.dtype) if y.is_floating_point() else y

    def means(at: Tensor) -> Tensor:
        return _means(chained_forwards.losses(task.criterion, chain, at, like, x, y), counts).T

    here = means(w[None]) if how.scheme == "forward" else None
    steps = torch.empty(together, len(w), dtype=results.dtype, device=results.device)
    for columns in results.split(together, dim=1):
        group = steps[: columns.shape[1]]
        for step in group:
            torch.mul(next(directions).to(step.device), how.sigma, out=step)
        columns.copy_(means(w + group) - (means(w - group) if here is None else here))


def client_bytes(
    task: Task, params: Mapping[str, Tensor], batch: Batch, scheme: str, dtype: torch.dtype, rows: int | None = None
) -> int:
    """Peak memory of one client's step: W, its batch, and the most that `differences` makes at once, for any K.

    It is measured by `fedarena.core.peak_memory.peak_bytes`, with two directions that are drawn when needed, and
    without the result's K numbers. Without `rows` the whole batch is evaluated at once.
    """
    n = sum(p.numel() for p in params.values())
    rows = len(batch.images()[1]) if rows is None else rows
    two = (torch.zeros(n, device=p.device) for p in list(params.values())[:1] * 2)
    results, peak = peak_bytes(
        lambda: differences(task, params, [batch], two, 2, Differencing(1.0, scheme, dtype), rows)
    )
    return nbytes(params) + nbytes({"x": batch.x, "y": batch.y}) + peak - nbytes({"results": results})


def client_rows(
    task: Task,
    params: Mapping[str, Tensor],
    batch: Batch,
    scheme: str,
    dtype: torch.dtype,
    budget_bytes: int,
    further_bytes: int = 0,
) -> int:
    """The most samples at a time for which `client_bytes` and the caller's further memory stay within a budget.

    Raises:
        UserError: the budget is below what the smallest piece takes; the error names a budget that is enough.
    """
    samples = len(batch.images()[1])
    low, high = (1 if separate(task.model) else samples), samples
    least = client_bytes(task, params, batch, scheme, dtype, low) + further_bytes
    if least > budget_bytes:
        raise UserError(
            f"option 'client-memory' is {budget_bytes / 1e6:g} MB, but W, the batch, one pass of {low} of its "
            f"{samples} samples and room for all results take up to {least / 1e6:.6f} MB: allowed with this model "
            f"and batch: {least / 1e6:.6f} or more"
        )
    while low < high:
        middle = (low + high + 1) // 2
        if client_bytes(task, params, batch, scheme, dtype, middle) + further_bytes <= budget_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def separate(model: nn.Module) -> bool:
    """Whether a model treats each sample by itself, so that the result does not depend on the rest of the batch.

    False for batch statistics, and for modules of other packages, which may do anything.
    """
    return all(_separate(module) for module in model.modules())


def _separate(module: nn.Module) -> bool:
    if isinstance(module, _BatchNorm):
        return not module.training and module.running_mean is not None
    return type(module).__module__.startswith(OWN)


class _Perturbed:
    """A copy of a model whose parameters are views of one buffer, W + s·z."""

    def __init__(self, model: nn.Module, params: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        own = dict(model.named_parameters())
        self._w = [params[name].detach().to(dtype) for name in own]
        self._sizes = [w.numel() for w in self._w]
        self._buffer = torch.empty(sum(self._sizes), dtype=dtype, device=self._w[0].device)
        view_of = _plain if any(isinstance(m, nn.GroupNorm) for m in model.modules()) else _channels_last
        self._views = [view_of(part, w) for part, w in zip(self._buffer.split(self._sizes), self._w, strict=True)]
        # deepcopy takes the entries of its memo as copied already.
        memo: dict[int, object] = {
            id(p): nn.Parameter(view, requires_grad=False) for p, view in zip(own.values(), self._views, strict=True)
        }
        memo |= {id(m): m for m in model.modules() if not (m._modules or m._parameters or m._buffers)}
        memo |= pooling.replacements(model) | overwriting.replacements(model)
        self.model: nn.Module = copy.deepcopy(model, memo)
        for module in self.model.modules():
            for name, b in module._buffers.items():
                if b is not None and b.is_floating_point():
                    module._buffers[name] = b.to(self._buffer)

    def stand(self) -> None:
        """Parameters ← W."""
        self._buffer.zero_()
        self._add()

    def move(self, z: Tensor, step: float) -> None:
        """Parameters ← W + step·z; the step is computed in the format of z."""
        parts = z.to(self._buffer.device).split(self._sizes)
        for view, part in zip(self._views, parts, strict=True):
            torch.mul(part.view(view.shape), step, out=view)
        self._add()

    def _add(self) -> None:
        for view, w in zip(self._views, self._w, strict=True):
            view.add_(w)


def _plain(part: Tensor, like: Tensor) -> Tensor:
    """A part of the buffer as a parameter of this shape."""
    return part.view(like.shape)


def _channels_last(part: Tensor, like: Tensor) -> Tensor:
    """The same, kernels of 2d convolutions in the order out, height, width, in."""
    if like.dim() != 4:
        return _plain(part, like)
    c_out, c_in, h, w = like.shape
    return part.view(c_out, h, w, c_in).permute(0, 3, 1, 2)


class _Losses:
    """The mean loss of each client at the network's present parameters [clients]."""

    def __init__(
        self,
        network: _Perturbed,
        criterion: Criterion,
        apart: bool,
        batches: Sequence[Batch],
        dtype: torch.dtype,
        rows: int | None,
    ) -> None:
        self._criterion = criterion
        images = [batch.images() for batch in batches]
        self._counts = [len(y) for _, y in images]
        front, self._rest = _parted(network.model)
        if apart:
            convolutions = any(isinstance(m, nn.Conv2d) for m in network.model.modules())
            size = rows or (PIECE if convolutions else max(1, sum(self._counts)))
            xs, ys = zip(*images, strict=True)
            images = list(zip(_split(xs, size), _split(ys, size), strict=True))
        elif rows is not None and rows < max(self._counts):
            raise UserError(
                f"option 'client-memory' asks for {rows} samples at a time, but this model needs a client's whole "
                f"batch of {max(self._counts)}, since its samples depend on each other"
            )
        self._pieces = [(front(x.to(dtype)), y.to(dtype) if y.is_floating_point() else y) for x, y in images]

    def __call__(self) -> Tensor:
        each = [self._criterion.each(self._rest(x), y) for x, y in self._pieces]
        losses = each[0] if len(each) == 1 else torch.cat(each)
        return _means(losses, self._counts)


def _means(losses: Tensor, counts: Sequence[int]) -> Tensor:
    """Each client's mean over its samples: [..., samples] → [..., clients]."""
    if len(set(counts)) == 1:
        return losses.view(*losses.shape[:-1], len(counts), counts[0]).mean(-1)
    return torch.stack([part.mean(-1) for part in losses.split(list(counts), dim=-1)], -1)


def _split(parts: Sequence[Tensor], size: int) -> Sequence[Tensor]:
    """All clients' samples in pieces of `size`."""
    pieces: Sequence[Tensor] = (parts[0] if len(parts) == 1 else torch.cat(list(parts))).split(size)
    return pieces


def _parted(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The layers of a chain before the first that has parameters, and the others."""
    if type(model) is not nn.Sequential:
        return nn.Identity(), model
    first = next((i for i, layer in enumerate(model) if next(layer.parameters(), None) is not None), len(model))
    return model[:first], model[first:]
