"""The split of the data: the shards of honest and corrupted clients, and the server's own samples."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from fedarena.core import registry
from fedarena.core.errors import UserError, place_of, type_of
from fedarena.core.rng import Rng
from fedarena.datasets import load
from fedarena.datasets.dataset import Dataset
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Auxiliary, Batch

Index = npt.NDArray[np.int64]


def choose_corrupted(spec: ProblemSpec, rng: Rng) -> tuple[int, ...]:
    """Draw the corrupted clients uniformly at random, so that a client's number says nothing."""
    return tuple(sorted(rng.numpy().permutation(spec.clients)[: spec.corrupted].tolist()))


def divide(data: Dataset, spec: ProblemSpec, corrupted: tuple[int, ...], rng: Rng) -> list[Index]:
    """One shard of the training samples a client; see `ProblemSpec.corrupted_data`. Raises UserError."""
    split = registry.find("partition", spec.partition).load()
    labels = _domains(data, spec) if getattr(split, "by", "classes") == "domains" else data.y_train

    def shards(n_clients: int, stream: Rng) -> list[Index]:
        made = split(labels, n_clients, stream.numpy(), spec.partition_options)
        return _required(made, split, n_clients, len(labels))

    if spec.corrupted_data == "shard" or not corrupted:
        return shards(spec.clients, rng.child("partition"))
    honest = spec.clients - len(corrupted)
    first = shards(honest, rng.child("partition"))
    others: list[Index] = []
    while len(others) < len(corrupted):
        others += shards(honest, rng.child("partition", "corrupted", len(others)))
    sources = {True: iter(others), False: iter(first)}
    return [next(sources[client in corrupted]) for client in range(spec.clients)]


def _required(made: Any, split: Any, n_clients: int, n: int) -> list[Index]:
    """What a partition made of n samples. Raises UserError, with its place, unless it is a shard for each client."""
    told = type_of(made)
    if isinstance(made, list | tuple | np.ndarray):
        odd = next((shard for shard in made if not _is_shard(shard, n)), None)
        if odd is None and len(made) == n_clients:
            return list(made)
        told = f"{len(made)} shards" if odd is None else f"{_shown(odd)} as a shard"
    allowed = f"for {n_clients} clients as many arrays int64 [N_c] of indices from 0 to {n - 1}"
    raise UserError(f"partition {place_of(split)} returned {told}, allowed: {allowed}")


def _is_shard(shard: Any, n: int) -> bool:
    right = isinstance(shard, np.ndarray) and shard.dtype == np.int64 and shard.ndim == 1 and shard.size > 0
    return bool(right and 0 <= shard.min() <= shard.max() < n)


def _shown(shard: Any) -> str:
    if not isinstance(shard, np.ndarray):
        return type_of(shard)
    values = f" from {shard.min()} to {shard.max()}" if shard.size and shard.dtype == np.int64 else ""
    return f"{shard.dtype} {list(shard.shape)}{values}"


def _domains(data: Dataset, spec: ProblemSpec) -> Index:
    """The domain of each training sample. Raises UserError for data that have none."""
    if data.domains is not None:
        return data.domains
    known = []
    for name in registry.registries()["dataset"].names():
        with contextlib.suppress(UserError):  # a broken plug-in must not hide the other data sets
            known += [name] if "domains" in dict(registry.find("dataset", name).facts) else []
    raise UserError(
        f"option 'partition' is {spec.partition}, which divides by domain, but data set {data.name} has no domains, "
        f"allowed: a data set that has ({', '.join(known)}), or another partition"
    )


def hold(data: Dataset, wanted: Auxiliary | None, rng: Rng, data_dir: Path | None) -> tuple[Batch | None, Index]:
    """The server's samples [1, n, ...], and their indices in `data` (none if they come from a foreign data set).

    A foreign data set's images are resized to the shape of `data` (bilinear; colour averaged to grey or grey
    repeated), and its labels are taken as they are.

    Raises:
        UserError: too few samples of a class, or a foreign data set with other classes or no images.
    """
    none = np.empty(0, np.int64)
    if wanted is None:
        return None, none
    if not data.n_classes:
        raise UserError(
            f"the server is to hold {wanted.per_class} samples a class, but the labels of {data.name} are numbers, "
            "allowed: a data set with classes"
        )
    foreign = wanted.dataset not in ("", data.name)
    source = load(wanted.dataset, data_dir) if foreign else data
    if source.n_classes != data.n_classes:
        raise UserError(
            f"option 'aux_dataset' is {wanted.dataset}, which has {source.n_classes} classes, allowed: a data set "
            f"with {data.n_classes}, as {data.name} has"
        )
    shapes = source.x_train.shape[1:], data.x_train.shape[1:]
    if shapes[0] != shapes[1] and {len(s) for s in shapes} != {3}:
        raise UserError(
            f"option 'aux_dataset' is {wanted.dataset}, whose inputs have shape {list(shapes[0])}, allowed: images "
            f"for images, tables of the columns of {data.name} for {data.name}"
        )
    generator, chosen = rng.numpy(), []
    counts = np.bincount(source.y_train, minlength=source.n_classes)
    if counts.min() < wanted.per_class:
        number = f"{wanted.per_class}, samples of each class that the server is to hold"
        demand = f"option '{wanted.option}' is {number}" if wanted.option else f"the rule asks for {number}"
        raise UserError(f"{demand}, allowed with {source.name}: 1 to {counts.min()}, which class {counts.argmin()} has")
    for k in range(source.n_classes):
        members = np.flatnonzero(source.y_train == k)
        chosen.append(generator.permutation(members)[: wanted.per_class])
    index = np.concatenate(chosen)
    x = torch.from_numpy(source.x_train[index]).float() / source.scale
    channels, *size = shapes[1]
    if x.shape[1] != channels:
        x = x.mean(1, keepdim=True).expand(-1, channels, -1, -1)
    if list(x.shape[2:]) != size:
        x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
    return Batch(x[None], torch.from_numpy(source.y_train[index])[None]), none if foreign else index
