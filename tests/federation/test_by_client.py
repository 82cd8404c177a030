"""The accuracy of each client on held-out data with its own shares of classes, by hand, and where it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fedarena.core.rng import Rng
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.by_client import accuracies, mean_and_lowest_decile
from fedarena.federation.spec import GroupSpec
from fedarena.goals.by_client import by_client
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import ProblemSpec, usual_problem
from fedarena.records.schema import RECORD
from fedarena.runs.engine import run_groups

NAN = float("nan")


def spec(partition: str = "pathological", corrupted: int = 0, **given: Any) -> ProblemSpec:
    named = {"model": "mlp", "clients": "6", "partition": partition, "corrupted": str(corrupted), **given}
    return usual_problem(named, {"model": {"widths": "8"}, "training": {"rounds": "12", "batch_size": "8"}})


def with_shards(labels: list[list[int]], corrupted: tuple[int, ...] = ()) -> Problem:
    """A problem whose clients hold samples of these classes."""
    y = torch.tensor([k for own in labels for k in own])
    shards = torch.arange(len(y)).split([len(own) for own in labels])
    return replace(build(spec(), 0), y=y, shards=shards, corrupted=corrupted)


def test_each_client_by_hand() -> None:
    """Shares (1, 0, 0), (1/2, 1/2, 0) and (1/4, 1/4, 1/2) of classes with accuracies .8, .4 and .1."""
    p = with_shards([[0, 0], [0, 1, 0, 1], [0, 1, 2, 2]])
    assert accuracies(p, (0.8, 0.4, 0.1)).tolist() == pytest.approx([0.8, 0.6, 0.35])
    mean, lowest = mean_and_lowest_decile(p, (0.8, 0.4, 0.1)) or (NAN, NAN)
    assert mean == pytest.approx((0.8 + 0.6 + 0.35) / 3)
    assert lowest == pytest.approx(0.35 + 0.2 * (0.6 - 0.35))  # a tenth of the way along two intervals


def test_corrupted_clients_do_not_count() -> None:
    p = with_shards([[0, 0], [1, 1], [2, 2]], corrupted=(1,))
    assert accuracies(p, (0.8, 0.4, 0.1)).tolist() == pytest.approx([0.8, 0.1])


def test_classes_without_held_out_samples_do_not_count() -> None:
    p = with_shards([[0, 1], [1, 1], [2, 1]])
    assert accuracies(p, (0.8, NAN, 0.1)).tolist() == pytest.approx([0.8, 0.1])
    assert mean_and_lowest_decile(p, (NAN, NAN, NAN)) is None
    assert mean_and_lowest_decile(p, ()) is None
    assert mean_and_lowest_decile(with_shards([[1], [1]]), (0.8, NAN, 0.1)) is None


def test_it_is_the_accuracy_on_held_out_data_with_the_client_s_weights() -> None:
    """Against each held-out sample with the weight n_ck / (held-out samples of its class)."""
    p = build(spec("dirichlet"), 0)
    run = federation.run(compose.make_defense(compose.parse_defense("fedavg"), p.task), p, Rng(0).child("federation"))
    right = (p.predictions(run.params).argmax(1) == p.y_test).double()
    by_class = run.curve[-1].by_class
    held_out = p.y_test.bincount(minlength=10).double()
    assert float(torch.tensor(by_class, dtype=torch.float64) @ held_out / held_out.sum()) == pytest.approx(run.accuracy)
    for shard, found in zip(p.shards, accuracies(p, by_class).tolist(), strict=True):
        counts = p.y[shard].bincount(minlength=10).double()
        weights = (counts / held_out)[p.y_test]
        assert found == pytest.approx(float(weights @ right / weights.sum()))


def test_clients_with_all_classes_alike_have_the_mean_over_classes() -> None:
    p = with_shards([[0, 1, 2], [2, 1, 0], [0, 0, 1, 1, 2, 2]])
    assert mean_and_lowest_decile(p, (0.9, 0.6, 0.3)) == (pytest.approx(0.6), pytest.approx(0.6))


@pytest.mark.usefixtures("briefly_alone")
def test_records_tell_it_where_clients_differ() -> None:
    """Of the attacked model under attack; in one line of the output."""
    made, attack = compose.parse_defense("fedavg"), compose.parse_attack("sign-flip")
    from fedarena.core.threat import Threat

    def records(partition: str) -> list[Any]:
        problem = spec(partition, corrupted=2)
        threats = (Threat("client", "paper", knows="own"),)
        groups = [
            GroupSpec(problem, defense=made, attack=which, threats=under, seed=0)
            for which, under in ((None, ()), (attack, threats))
        ]
        return [record for result in run_groups(groups, 1) for record in result.records]

    clean, attacked = records("pathological")
    assert clean["by_client"] != attacked["by_client"]
    assert 0 <= clean["by_client"]["lowest_decile"] <= clean["by_client"]["mean"] <= 1
    for record in (clean, attacked):
        without = {name: value for name, value in record.items() if name != "by_client"}
        RECORD(record, "")
        RECORD(without, "")
    line = by_client([clean, attacked])
    assert "fedavg " in line
    assert "fedavg under sign-flip (own) " in line
    alike = records("iid")
    assert all("by_client" not in record for record in alike)
    assert by_client(alike) == ""
