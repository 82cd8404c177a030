"""Partitions: disjoint, covering, never empty; each with the law that its card names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.datasets.partitions.algorithm4 import split as algorithm4
from fedarena.datasets.partitions.cards import ClassGroupsOptions, DirichletOptions, FewOptions, PathologicalOptions
from fedarena.datasets.partitions.dirichlet import split as dirichlet
from fedarena.datasets.partitions.iid import split as iid

NAMES = ["algorithm4", "dirichlet", "iid", "pathological"]


def split(name: str, labels: np.ndarray, n_clients: int, seed: int = 0, options: Any = None) -> list[np.ndarray]:
    card = registry.find("partition", name)
    return card.load()(labels, n_clients, np.random.default_rng(seed), options or card.options())  # type: ignore[no-any-return]


def shares(labels: np.ndarray, shards: list[np.ndarray]) -> np.ndarray:
    """Share of each class at each client: [clients, classes], columns sum to 1."""
    counts = np.array([np.bincount(labels[s], minlength=10) for s in shards])
    return counts / counts.sum(0)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_sample_goes_to_exactly_one_client(name: str, data: st.DataObject) -> None:
    labels = np.array(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=200)), np.int64)
    n_clients = data.draw(st.integers(1, max(1, len(labels) // 8)))
    usual = {"dirichlet": DirichletOptions(alpha=10.0), "pathological": PathologicalOptions(classes=1)}
    options = usual.get(name)
    shards = split(name, labels, n_clients, data.draw(st.integers(0, 2**32)), options)
    assert len(shards) == n_clients
    assert all(len(shard) for shard in shards)
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(len(labels)))
    assert all(shard.dtype == np.int64 for shard in shards)


@pytest.mark.parametrize("name", ["algorithm4", "iid"])
@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 300), n_clients=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_equal_shards_differ_by_at_most_one(name: str, n: int, n_clients: int, seed: int) -> None:
    n_clients = min(n, n_clients)
    sizes = [len(s) for s in split(name, np.random.default_rng(seed).integers(0, 10, n), n_clients, seed)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_a_clients_samples_are_in_random_order(name: str) -> None:
    labels = np.repeat(np.arange(10), 200)
    options = DirichletOptions(alpha=100.0) if name == "dirichlet" else None
    for shard in split(name, labels, 4, options=options):
        changes = np.count_nonzero(np.diff(labels[shard]))
        assert changes > len(shard) / 3  # sorted by class there would be at most nine


@pytest.mark.parametrize("name", ["iid", "copies", "few"])
def test_a_regression_is_divided_by_what_needs_no_classes(name: str) -> None:
    numbers = np.linspace(0, 1, 400, dtype=np.float32)
    got, truth = (split(name, y, 7) for y in (numbers, np.arange(400) % 10))
    assert all(np.array_equal(a, b) for a, b in zip(got, truth, strict=True))


@pytest.mark.parametrize("name", ["dirichlet", "algorithm4", "pathological", "class-groups"])
def test_what_needs_classes_refuses_a_regression(name: str) -> None:
    with pytest.raises(UserError, match=rf"'partition' is {name}, .*numbers in their place, allowed: .*iid, copies"):
        split(name, np.linspace(0, 1, 100, dtype=np.float32), 7)


@pytest.mark.parametrize(("n", "n_clients"), [(100, 10), (103, 10), (20, 1), (7, 7)])
def test_copies_are_the_same_share_of_all_samples_for_everybody(n: int, n_clients: int) -> None:
    shards = split("copies", np.zeros(n, np.int64), n_clients)
    assert len(shards) == n_clients
    assert all(np.array_equal(shard, shards[0]) for shard in shards)
    assert len(set(shards[0].tolist())) == len(shards[0]) == n // n_clients
    assert not n_clients > 1 or not np.shares_memory(shards[0], shards[-1])
    assert 0 <= shards[0].min() <= shards[0].max() < n


def test_copies_are_drawn_from_all_samples_by_the_generator() -> None:
    labels = np.zeros(1000, np.int64)
    first, same, other = (split("copies", labels, 4, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert np.count_nonzero(first >= 250) > 150  # of 250: no block from the start
    with pytest.raises(UserError, match="option 'clients' is 11, but 10 training samples allow 1 to 10"):
        split("copies", np.arange(10), 11)


def test_iid_shards_hold_every_class_alike() -> None:
    labels = np.arange(20000) % 10
    found = shares(labels, iid(labels, 10, np.random.default_rng(0), NoOptions()))
    assert np.abs(found - 0.1).max() < 0.035  # five standard deviations of 200 draws in 2000


def test_dirichlet_shares_have_the_stated_variance() -> None:
    """Var q_c = (n − 1) / (n² (nα + 1)) for q ~ Dir_n(α)."""
    labels, n = np.arange(20000) % 10, 5
    for alpha in (0.3, 1.0, 10.0):
        options = DirichletOptions(alpha=alpha)
        found = [shares(labels, dirichlet(labels, n, np.random.default_rng(s), options)) for s in range(200)]
        expected = (n - 1) / (n**2 * (n * alpha + 1))
        assert np.var(found) == pytest.approx(expected, rel=0.1)
        assert np.mean(found) == pytest.approx(1 / n)


def test_dirichlet_keeps_its_smallest_size() -> None:
    labels = np.arange(300) % 3
    for seed in range(50):
        shards = dirichlet(labels, 10, np.random.default_rng(seed), DirichletOptions(alpha=0.5, min_size=5))
        assert min(len(s) for s in shards) >= 5


def test_balanced_clients_get_no_class_after_they_hold_their_share() -> None:
    """With the classes in their order, a client's last class is the one with which it exceeded N/n samples, if any."""
    labels, n = np.arange(10_000) % 10, 10
    largest = {False: 0, True: 0}
    for seed in range(20):
        for balanced in largest:
            shards = dirichlet(labels, n, np.random.default_rng(seed), DirichletOptions(alpha=0.1, balanced=balanced))
            assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(len(labels)))
            counts = np.array([np.bincount(labels[shard], minlength=10) for shard in shards])
            before = counts.cumsum(1) - counts
            assert not balanced or not counts[before > len(labels) / n].any()
            largest[balanced] = max(largest[balanced], int(counts.sum(1).max()))
    assert largest[True] < 2000 < largest[False]  # less than a share and a class
    few = dirichlet(labels, n, np.random.default_rng(0), DirichletOptions(alpha=1e-3, balanced=True))
    assert min(len(shard) for shard in few) >= 1


def test_dirichlet_gives_up_in_one_line() -> None:
    with pytest.raises(UserError, match=r"option 'alpha' is 0.001.*each of 9 clients"):
        dirichlet(np.zeros(10, np.int64), 9, np.random.default_rng(0), DirichletOptions(alpha=0.001))
    with pytest.raises(
        UserError, match=r"'partition\.min_size' is 3, allowed with 10 training samples for 4 clients: 1 to 2"
    ):
        dirichlet(np.zeros(10, np.int64), 4, np.random.default_rng(0), DirichletOptions(min_size=3))
    with pytest.raises(UserError, match="alpha"):
        dirichlet(np.zeros(10, np.int64), 4, np.random.default_rng(0), DirichletOptions(alpha=1e308))


def test_algorithm4_is_its_pseudocode() -> None:
    """Line by line from the paper, with the same draws, where n divides N."""
    labels, n = np.random.default_rng(5).integers(0, 10, 2000), 20
    got = algorithm4(labels, n, np.random.default_rng(3), NoOptions())
    rng, piles = np.random.default_rng(3), [[] for _ in range(n)]  # type: ignore[var-annotated]
    for k in range(10):
        group = rng.permutation([i for i in range(2000) if labels[i] == k])
        v = rng.random(n)
        start = total = 0.0
        for i in range(n):
            total += v[i] / sum(v)
            piles[i] += group[round(start) : round(total * len(group))].tolist()
            start = total * len(group)
    row = [i for pile in piles for i in pile]
    size = -(-len(row) // n)
    expected = [sorted(row[i * size : (i + 1) * size]) for i in range(n)]
    assert [sorted(s.tolist()) for s in got] == expected


def test_algorithm4_skews_labels_as_in_the_papers_figure() -> None:
    """Figure 5: with 20 workers, the share of a class in a worker's data ranges from near 0 to about 0.3."""
    labels = np.arange(60000) % 10
    shards = algorithm4(labels, 20, np.random.default_rng(0), NoOptions())
    mix = np.array([np.bincount(labels[s], minlength=10) / len(s) for s in shards])
    assert mix.min() < 0.02
    assert 0.2 < mix.max() < 0.6


def test_the_card_gives_the_bounds_of_its_options() -> None:
    card = registry.find("partition", "dirichlet")
    assert card.parse({"alpha": "0.1"}) == DirichletOptions(alpha=0.1)
    with pytest.raises(UserError, match="alpha"):
        card.parse({"alpha": "0"})


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_pathological_clients_hold_whole_shards_of_few_classes(classes: int) -> None:
    """The paper's case at a tenth of its size: classes that divide into whole shards."""
    labels, n = np.random.default_rng(1).permutation(np.arange(6000) % 10), 100
    shards = split("pathological", labels, n, options=PathologicalOptions(classes=classes))
    assert {len(s) for s in shards} == {60}
    held = [np.unique(labels[s], return_counts=True)[1] for s in shards]
    assert max(len(counts) for counts in held) == classes
    assert all((counts % (60 // classes) == 0).all() for counts in held)
    assert shares(labels, shards).max() <= classes / 10 + 1e-9


@pytest.mark.parametrize(("n", "n_clients", "classes"), [(100, 7, 2), (11, 5, 2), (30, 3, 10)])
def test_pathological_shards_that_do_not_divide_the_samples_differ_by_one(n: int, n_clients: int, classes: int) -> None:
    labels = np.arange(n) % 3
    shards = split("pathological", labels, n_clients, options=PathologicalOptions(classes=classes))
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(n))
    low, high = n // (n_clients * classes), -(-n // (n_clients * classes))
    assert all(low * classes <= len(s) <= high * classes for s in shards)


def test_pathological_gives_up_in_one_line() -> None:
    with pytest.raises(
        UserError, match=r"'partition\.classes' is 4, allowed with 30 training samples for 10 clients: 1 to 3"
    ):
        split("pathological", np.arange(30) % 3, 10, options=PathologicalOptions(classes=4))
    with pytest.raises(UserError, match="classes"):
        registry.find("partition", "pathological").parse({"classes": "0"})


def test_few_gives_each_client_so_many_and_no_sample_twice() -> None:
    labels = np.arange(1000) % 10
    shards = split("few", labels, 7, options=FewOptions(samples=20))
    assert [len(s) for s in shards] == [20] * 7
    assert len(np.unique(np.concatenate(shards))) == 140
    assert not np.array_equal(shards[0], split("few", labels, 7, 1, FewOptions(samples=20))[0])
    with pytest.raises(
        UserError, match=r"'partition\.samples' is 20, allowed with 1000 training samples for 51 clients: 1 to 19"
    ):
        split("few", labels, 51, options=FewOptions(samples=20))


def test_class_groups_hold_classes_of_their_own() -> None:
    """As in the authors' code: digits 0 to 4 in the first half of the clients, 5 to 9 in the second, all alike."""
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), np.arange(90, 110, 2)))
    shards = split("class-groups", labels, 6)
    assert {len(shard) for shard in shards} == {np.count_nonzero(labels < 5) // 3}
    assert len(np.unique(np.concatenate(shards))) == sum(map(len, shards))
    assert [set(labels[shard].tolist()) for shard in shards] == [set(range(5))] * 3 + [set(range(5, 10))] * 3
    assert all(np.count_nonzero(np.diff(labels[shard])) > len(shard) / 2 for shard in shards)  # in random order
    assert not np.array_equal(shards[0], split("class-groups", labels, 6, 1)[0])
    three = split("class-groups", labels, 6, options=ClassGroupsOptions(groups=3, samples=20))
    assert [len(shard) for shard in three] == [20] * 6
    held = [set(labels[np.concatenate(three[i : i + 2])].tolist()) for i in (0, 2, 4)]
    assert held == [{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}]
    five = split("class-groups", labels, 5)
    assert [min(labels[shard]) >= 5 for shard in five] == [False] * 3 + [True] * 2
    assert len({len(shard) for shard in five}) == 1


def test_class_groups_give_up_in_one_line() -> None:
    labels = np.repeat(np.arange(4), 5)
    for options, n_clients, message in (
        (
            ClassGroupsOptions(groups=3),
            2,
            "groups' is 3, allowed: at most the number of clients, 2, and that of classes, 4",
        ),
        (
            ClassGroupsOptions(groups=5),
            10,
            "groups' is 5, allowed: at most the number of clients, 10, and that of classes, 4",
        ),
        (ClassGroupsOptions(samples=6), 4, "samples' is 6, allowed with 2 groups of classes: at most 5"),
    ):
        with pytest.raises(UserError, match=message):
            split("class-groups", labels, n_clients, options=options)
    with pytest.raises(UserError, match="'clients' is 10, allowed with 2 groups of classes: as many as each get"):
        split("class-groups", np.array([0] * 4 + [1] * 20), 10)
