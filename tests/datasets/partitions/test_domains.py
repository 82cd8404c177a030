"""Feature skew: one domain a client, clients and samples shared out evenly, and only data with domains."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.partitions.domains import split
from fedarena.problem.data_split import divide
from fedarena.problem.spec import ProblemSpec

SPEC = ProblemSpec("digits", model="mlp", partition="domains", clients=12)


def divided(domains: np.ndarray, n_clients: int, seed: int = 0) -> list[np.ndarray]:
    return split(domains, n_clients, np.random.default_rng(seed), NoOptions())


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(6, 60), min_size=1, max_size=5),
    n_clients=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_every_client_has_one_domain_and_all_is_shared_out_evenly(sizes: list[int], n_clients: int, seed: int) -> None:
    assume(len(sizes) <= n_clients <= 6 * len(sizes))
    domains = np.random.default_rng(seed).permutation(np.repeat(3 * np.arange(len(sizes)), sizes))  # numbers may skip
    shards = divided(domains, n_clients, seed)
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(len(domains)))
    assert all(shard.dtype == np.int64 for shard in shards)
    held = [np.unique(domains[shard]).tolist() for shard in shards]
    assert held == [[3 * (c % len(sizes))] for c in range(n_clients)]
    for turn, size in enumerate(sizes):
        mine = [len(shard) for shard in shards[turn :: len(sizes)]]
        assert sum(mine) == size
        assert max(mine) - min(mine) <= 1


def test_the_paper_s_federation_has_ten_clients_in_each_of_four_domains() -> None:
    shards = divided(np.repeat(np.arange(4), (410, 525, 630, 745)), 40)
    assert [len(s) for s in shards[:4]] == [41, 53, 63, 75]
    assert len(shards) == 40


def test_a_client_s_samples_are_drawn_at_random_from_its_domain() -> None:
    domains = np.repeat(np.arange(2), 1000)
    first, same, other = (divided(domains, 4, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    for shard in first:
        assert np.count_nonzero(np.diff(shard) < 0) > len(shard) / 3  # in random order
        assert set(shard.tolist()) != set(range(shard.min(), shard.min() + len(shard)))  # no block of neighbours


def test_too_few_and_too_many_clients_are_refused() -> None:
    domains = np.repeat(np.arange(3), (50, 50, 4))
    assert len(divided(domains, 3)) == 3
    with pytest.raises(UserError, match=r"option 'clients' is 2, .*one of 3 domains, allowed: 3 or more"):
        divided(domains, 2)
    assert len(divided(domains, 14)) == 14  # 5, 5 and 4 clients
    with pytest.raises(UserError, match=r"option 'clients' is 15, of which 5 would share domain 2, .*only 4 training"):
        divided(domains, 15)
    with pytest.raises(UserError, match="option 'clients' is 105, but 104 training samples"):
        divided(domains, 105)


@pytest.fixture
def with_domains() -> Dataset:
    """The digits, of which every third is said to be of another origin."""
    digits: Dataset = registry.find("dataset", "digits").load()(None)
    return dataclasses.replace(digits, domains=(np.arange(len(digits.y_train)) % 3 == 0).astype(np.int64))


def test_a_refusal_of_data_without_domains_names_data_with_them() -> None:
    digits = registry.find("dataset", "digits").load()(None)
    with pytest.raises(UserError, match=r"'partition' is domains, .*digits has no domains, .*\(.*digit-domains.*\)"):
        divide(digits, SPEC, (), Rng(0))


def test_a_federation_is_divided_by_domain_whoever_is_corrupted(with_domains: Dataset) -> None:
    assert with_domains.domains is not None
    shared = divide(with_domains, SPEC, (), Rng(0))
    attacked = divide(with_domains, dataclasses.replace(SPEC, corrupted=5), (0, 2, 4, 6, 8), Rng(0))
    assert all(np.array_equal(a, b) for a, b in zip(shared, attacked, strict=True))
    resampled = dataclasses.replace(SPEC, corrupted=5, corrupted_data="resampled")
    drawn = divide(with_domains, resampled, (0, 2, 4, 6, 8), Rng(0))
    for shards in (shared, drawn):
        assert len(shards) == 12
        assert all(len(np.unique(with_domains.domains[s])) == 1 for s in shards)
    honest = [s for c, s in enumerate(drawn) if c not in (0, 2, 4, 6, 8)]
    assert sum(map(len, honest)) == len(with_domains.y_train)


@pytest.mark.parametrize("partition", ["iid", "dirichlet", "algorithm4"])
def test_other_partitions_go_by_classes_as_ever(partition: str, with_domains: Dataset) -> None:
    options = registry.find("partition", partition).options()
    spec = dataclasses.replace(SPEC, partition=partition, partition_options=options)
    plain = dataclasses.replace(with_domains, domains=None)
    got, truth = (divide(data, spec, (), Rng(1)) for data in (with_domains, plain))
    assert all(np.array_equal(a, b) for a, b in zip(got, truth, strict=True))
