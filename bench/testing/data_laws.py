"""Laws of data sets and partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedarena.core.errors import UserError
from fedarena.datasets.dataset import AbsentData, Dataset, load_from
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require

SHARED = 0.05
"""The largest share of held-out samples that may be training samples as well; real tables repeat some rows."""
CLIENTS = 5


def loaded(method: Method) -> Dataset:
    """The data set. Raises LawIdle where its files are absent, and UserError for what its contract does not allow."""
    try:
        return load_from(method.target, method.data_dir)
    except AbsentData as error:
        raise LawIdle(f"it cannot be loaded here: {error}") from None


@law("dataset")
def samples_fit(method: Method) -> None:
    """Loading gives a data set of the card's name, whose arrays have the contract's shapes, types and ranges."""
    data = loaded(method)
    named = data.name == method.card.name
    require(named, f"the data set is named '{data.name}', the card '{method.card.name}'", "give both one name")
    require(len(data.y_test) > 0, "there are no held-out samples", "hold some out as x_test and y_test")
    require(not data.warnings, "; ".join(data.warnings), "set scale to the value that means 1.0")


@law("dataset")
def loading_repeats(method: Method) -> None:
    """Loading twice gives the same arrays in the same order."""
    one, two = (loaded(method) for _ in range(2))
    parts = [p for p in ("x_train", "y_train", "x_test", "y_test") if not _equal(getattr(one, p), getattr(two, p))]
    require(not parts, f"{', '.join(parts)} differ", "split with a fixed seed (random_state=0)")


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


@law("dataset")
def labels_occur(method: Method) -> None:
    """Every class has training samples, and no class is held out alone."""
    data = loaded(method)
    if not data.n_classes:
        raise LawIdle("its labels are numbers")
    missing = sorted(set(range(data.n_classes)) - set(data.y_train.tolist()))
    told = ", ".join(map(str, missing[:5]))
    require(not missing, f"{len(missing)} of {data.n_classes} classes have no training sample: {told}", "count from 0")


@law("dataset")
def held_out_is_apart(method: Method) -> None:
    """Held-out samples are no training samples."""
    data = loaded(method)
    train = {row.tobytes() for row in data.x_train.reshape(len(data.x_train), -1)}
    shared = sum(row.tobytes() in train for row in data.x_test.reshape(len(data.x_test), -1)) / max(1, len(data.x_test))
    figure = f"{shared:.0%} of the held-out samples are training samples, allowed: {SHARED:.0%}"
    require(shared <= SHARED, figure, "split the samples before anything else")


# -- partitions -------------------------------------------------------------------------------------


def shards_of(method: Method, n_clients: int = CLIENTS, seed: int = 0, n: int = 1000) -> list[Any]:
    """The shards of samples of ten classes in turn, which are taken for domains where the partition goes by these."""
    labels = np.arange(n, dtype=np.int64) % (CLIENTS if hasattr(method.target, "by") else 10)
    found: list[Any] = method.target(labels, n_clients, np.random.default_rng(seed), method.options)
    return found


@law("partition")
def shards_fit(method: Method) -> None:
    """There is a shard for each client, of int64 indices of samples, and none is empty."""
    shards = shards_of(method)
    require(len(shards) == CLIENTS, f"{len(shards)} shards for {CLIENTS} clients", "return one for each client")
    for c, shard in enumerate(shards):
        right = isinstance(shard, np.ndarray) and shard.dtype == np.int64 and shard.ndim == 1
        told = f"{shard.dtype} {list(shard.shape)}" if isinstance(shard, np.ndarray) else type(shard).__name__
        require(right, f"the shard of client {c} is {told}", "return arrays int64 [N_c]")
        require(len(shard) > 0, f"the shard of client {c} is empty", "give each client a sample")
        inside = 0 <= shard.min() <= shard.max() < 1000
        require(
            inside, f"the shard of client {c} names samples {shard.min()} to {shard.max()} of 1000", "name 0 to N−1"
        )


@law("partition")
def samples_go_once(method: Method) -> None:
    """No client has a sample twice, and no two clients have the same; unless all clients have the same ones."""
    shards = shards_of(method)
    for c, shard in enumerate(shards):
        twice = len(shard) - len(np.unique(shard))
        require(twice == 0, f"client {c} has {twice} samples twice", "draw without replacement")
    if len(shards) > 1 and all(np.array_equal(np.sort(shard), np.sort(shards[0])) for shard in shards):
        raise LawIdle("it gives all clients the same samples")
    every = np.concatenate(shards)
    twice = len(every) - len(np.unique(every))
    require(twice == 0, f"{twice} samples are at two clients", "give each sample to one client at most")


@law("partition")
def generator_decides(method: Method) -> None:
    """The same generator gives the same shards, and another one gives others."""
    one, same, other = (shards_of(method, seed=seed) for seed in (0, 0, 1))
    require(_all_equal(one, same), "the same seed gives other shards", "draw from the given generator alone")
    require(not _all_equal(one, other), "another seed gives the same shards", "draw from the given generator")


def _all_equal(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@law("partition")
def impossible_numbers_refused(method: Method) -> None:
    """No clients at all, and more clients than samples, are refused by UserError."""
    for n_clients in (0, -1, 11):
        try:
            shards_of(method, n_clients, n=10)
        except UserError as error:
            require("clients" in str(error), f"{n_clients} clients are refused with {str(error)!r}", "name the option")
        except Exception as error:
            wrong = f"{n_clients} clients for 10 samples raise {type(error).__name__}: {error}"
            raise LawBroken(wrong, "call `fedarena.datasets.dataset.check_clients` first") from error
        else:
            wrong = f"{n_clients} clients for 10 samples are accepted"
            raise LawBroken(wrong, "call `fedarena.datasets.dataset.check_clients` first")
