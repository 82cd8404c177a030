"""The choice of the form that computes the clients' uploads: by structure, never by name, without a fallback."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from fedarena.core.tensors import Tensors, row, stack
from fedarena.problem.client_steps import loop, one_pass, side_by_side, stacked, vmapped
from fedarena.problem.client_steps.chain import Dense, chain_of, front_of
from fedarena.problem.client_steps.inputs import InputMap
from fedarena.problem.client_steps.layered import Layer, layers_of
from fedarena.problem.client_steps.onto import Onto
from fedarena.problem.client_steps.vmapped import ClientStep
from fedarena.problem.local_training import Loss
from fedarena.problem.task import Batch, Task

T = TypeVar("T")


def uploads(
    task: Task,
    loss: Loss,
    start: Tensors,
    batches: Sequence[Batch],
    metric: Mapping[str, Tensor] | None = None,
    inputs: Mapping[str, InputMap] | None = None,
    onto: Onto | None = None,
) -> Tensors:
    """`fedarena.problem.local_training.upload` of every client, stacked in the order of `batches`.

    Under the task's own loss a chain of dense layers goes to `fedarena.problem.client_steps.stacked`. Other layers in a
    row go to `fedarena.problem.client_steps.one_pass` with FedSGD, and with local epochs of a small network to
    `fedarena.problem.client_steps.side_by_side`. Everything else goes to `fedarena.problem.client_steps.loop`.

    Args:
        task: gives the model and the schedule.
        loss, start, metric: as for `upload`.
        batches: one a client; clients with different numbers of steps are computed in groups.
        inputs: given when `loss` is the task's loss with these maps on the inputs of its layers, by weight name:
            z = map(h) Wᵀ + b. The faster form then computes exactly that and does not call `loss`.
        onto: FedSGD only; what the clients' gradients are added to, in the order of `batches`.
    """
    metric = metric or {}
    own_loss = loss == task.loss
    chain = _chain(task, start, metric) if inputs is not None or own_loss else None
    layers = _layers(task, start) if chain is None and own_loss else None

    def train(members: Sequence[int]) -> Tensors:
        group, own = [batches[i] for i in members], None if onto is None else onto.of(members)
        if chain is not None:
            prepared = _prepared(task, group)
            return stacked.train(chain, task.schedule, task.criterion, start, prepared, metric, inputs or {}, own)
        if layers is not None and task.schedule.fedsgd:
            ups = one_pass.train(task, layers, start, group)
        elif layers is not None and not metric and side_by_side.pays(start, len(group)):
            ups = side_by_side.train(task, start, group)
        else:
            objective = loop.of_task(task, start) if own_loss else loop.of_loss(loss, start)
            ups = loop.train(objective, task.schedule, start, group, metric)
        if own is not None:
            own.add(ups)
        return ups

    return _in_groups(batches, _steps(task), train)


def uploads_apart(
    task: Task,
    starts: Tensors,
    batches: Sequence[Batch],
    onto: Onto | None = None,
    then: Callable[[Tensors, Tensors], None] | None = None,
) -> Tensors:
    """`uploads` under the task's own loss, of clients that start at parameters of their own.

    Args:
        starts: the parameters, stacked in the order of `batches`.
        onto: as for `uploads`.
        then: gets the starts and the uploads of some clients at a time, while both are in the cache, and may overwrite
            the uploads.
    """
    one = row(starts, 0)
    chain, layers = _chain(task, one, {}), _layers(task, one)

    def train(members: Sequence[int]) -> Tensors:
        group, own = [batches[i] for i in members], None if onto is None else onto.of(members)
        some = starts if len(members) == len(batches) else {name: t[list(members)] for name, t in starts.items()}
        if chain is not None:
            prepared, schedule, criterion = _prepared(task, group), task.schedule, task.criterion
            return stacked.train(chain, schedule, criterion, some, prepared, {}, {}, own, apart=True, then=then)
        if layers is not None and side_by_side.pays(one, len(group)):
            ups = side_by_side.train(task, some, group, apart=True)
        else:
            ups = stack([row(uploads(task, task.loss, row(starts, i), [batches[i]]), 0) for i in members])
        if own is not None:
            own.add(ups)
        if then is not None:
            then(some, ups)
        return ups

    return _in_groups(batches, _steps(task), train)


def _steps(task: Task) -> Callable[[Batch], Hashable]:
    """What the batches of clients that are computed together have in common."""
    return (lambda b: b.x.shape[1:]) if task.schedule.fedsgd else (lambda b: b.x.shape)


def run_general(
    client: ClientStep,
    task: Task,
    down: Tensors,
    batches: Sequence[Batch],
    memories: Sequence[Tensors],
    noises: Sequence[Tensors],
) -> tuple[Tensors, list[Tensors]]:
    """Any pure client step for many clients: uploads stacked over clients, and their memories.

    Models without convolutions run under `torch.func.vmap`; those with convolutions one client after the other,
    which is faster for them.
    """
    given = list(zip(batches, memories, noises, strict=True))
    if any(isinstance(layer, nn.Conv2d) for _, layer in task.layers):
        done = [client(down, *one) for one in given]
    else:
        done = [({}, {})] * len(given)
        for members in _groups([vmapped.shape_of(*one) for one in given]):
            b, m, n = zip(*(given[i] for i in members), strict=True)
            for i, result in zip(members, vmapped.run(client, down, b, m, n), strict=True):
                done[i] = result
    return stack([up for up, _ in done]), [memory for _, memory in done]


def _prepared(task: Task, batches: Sequence[Batch]) -> Sequence[Batch]:
    """The batches as the input of the chain's first layer."""
    front = front_of(task.model)
    if front is None:
        return batches
    return [Batch(front(b.x.flatten(0, 1)).unflatten(0, b.x.shape[:2]), b.y) for b in batches]


def _chain(task: Task, start: Tensors, metric: Mapping[str, Tensor]) -> tuple[Dense, ...] | None:
    """The model's dense layers if the stacked form covers this case. Its lazy steps cannot decay weights."""
    if task.schedule.weight_decay and not task.schedule.fedsgd:
        return None
    chain = chain_of(task.model, len(task.input_shape))
    if chain is None:
        return None
    weights = {layer.weight for layer in chain}
    by_column = all(name in weights and d.dim() == 1 for name, d in metric.items())
    same = set(start) == {name for layer in chain for name in (layer.weight, layer.bias) if name}
    return chain if by_column and same else None


def _layers(task: Task, start: Tensors) -> tuple[Layer, ...] | None:
    """The model's layers if they stand in a row, and all of them are trained."""
    whole = set(start) == {name for name, _ in task.model.named_parameters()}
    return layers_of(task.model) if whole else None


def _in_groups(
    batches: Sequence[Batch], key: Callable[[Batch], Hashable], train: Callable[[Sequence[int]], Tensors]
) -> Tensors:
    """Run `train` on the positions of the clients of each key, and put the results in the clients' order."""
    groups = _groups([key(batch) for batch in batches])
    parts = [train(members) for members in groups]
    if len(parts) == 1:
        return parts[0]
    order = torch.argsort(torch.tensor([i for members in groups for i in members]))
    return {name: torch.cat([part[name] for part in parts])[order.to(t.device)] for name, t in parts[0].items()}


def _groups(keys: Sequence[Hashable]) -> list[list[int]]:
    """Positions with equal keys, in order of first appearance."""
    groups: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return list(groups.values())
