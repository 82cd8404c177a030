"""A Ray cluster of two nodes gives what one process gives, and goes on when a node dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import TINY, contents, planned

from fedarena.core.errors import ClusterGone, UserError
from fedarena.runs.executors import Ray, executor
from fedarena.runs.suite.run import run_suite

pytest.importorskip("ray", reason='ray is not installed: it is the extra "fedarena[ray]"')

MEMORY = 100 * 2**20
"""Bytes of each node's object store."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes of one slot each, on this machine."""
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=1, object_store_memory=MEMORY)
    yield made
    ray.shutdown()
    made.shutdown()


def test_two_nodes_give_the_records_of_one_process(cluster: Any, tmp_path: Path, tiny: Path) -> None:
    suite, plan = planned(TINY, tmp_path)
    with executor("ray", None, cluster.address) as place:
        assert place.slots == 2
        outcome = run_suite(suite, plan, tmp_path / "out", None, lambda: place)
    assert outcome.lost == {}
    assert contents(tmp_path / "out") == contents(tiny)


def test_a_node_that_dies_costs_only_what_was_under_way(cluster: Any, tmp_path: Path, tiny: Path) -> None:
    suite, plan = planned(TINY, tmp_path)
    killed = False

    def report_progress(done: int, total: int, *told: object) -> None:
        nonlocal killed
        if done >= 5 and not killed:
            killed = True
            cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)

    with executor("ray", None, cluster.address) as place:
        outcome = run_suite(suite, plan, tmp_path / "out", None, lambda: place, report_progress=report_progress)
    assert killed
    assert outcome.lost == {}
    assert contents(tmp_path / "out") == contents(tiny)


def test_a_cluster_that_is_gone_ends_the_run_and_keeps_what_was_measured(
    cluster: Any, tmp_path: Path, tiny: Path
) -> None:
    suite, plan = planned(TINY, tmp_path)

    def report_progress(done: int, total: int, *told: object) -> None:
        if done == 5:
            for node in (*cluster.worker_nodes.copy(), cluster.head_node):
                node.kill_raylet()

    with (
        pytest.raises(ClusterGone, match="the Ray cluster is gone"),
        executor("ray", None, cluster.address) as place,
    ):
        run_suite(suite, plan, tmp_path / "out", None, lambda: place, report_progress=report_progress)
    measured = contents(tmp_path / "out")
    assert 5 <= len(measured) < len(contents(tiny))
    with executor("local", 1) as place:
        outcome = run_suite(suite, plan, tmp_path / "out", None, lambda: place)
    assert outcome.there >= 5
    assert contents(tmp_path / "out") == contents(tiny)


def test_without_an_address_it_is_a_cluster_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the environment names another."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with executor("ray", 1) as place:
        assert isinstance(place, Ray)
        assert place.slots == 1
        assert place.submit(os.getpid).result() != os.getpid()


def test_ray_does_not_end_the_process_at_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with executor("ray", 1):
        assert signal.getsignal(signal.SIGTERM) == before


def test_a_node_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise Exception("The current node timed out\nduring startup")  # as Ray says it

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(
        UserError, match=r"no cluster can be started here \(The current node timed out during startup\)"
    ):
        Ray(None, 1)


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    with pytest.raises(UserError, match=r"option 'address' is '127.0.0.1:1', where no Ray cluster answers"):
        Ray("127.0.0.1:1", None)
