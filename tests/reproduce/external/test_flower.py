"""The study with Flower: every run is the code's, every number is of its tables, and a small run gives a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fedarena.core.registry import find
from fedarena.federation.spec import GroupSpec
from fedarena.reproduce.external import flower
from fedarena.reproduce.external.flower import ACCURACY, BY_NAME, SUCCESS, TABLE, Experiment
from fedarena.reproduce.machine import Machine


def test_every_cell_has_an_accuracy_and_a_backdoor_its_success() -> None:
    assert len(BY_NAME) == 4 * len(ACCURACY) == 4 * 15
    assert {setting for setting in ACCURACY if setting[0] == "backdoor"} == set(SUCCESS)
    assert Counter(one.column for one in TABLE.published) == {"accuracy": 60, "success": 20}
    numbers = {(one.piece, one.column): one.number for one in TABLE.published}
    assert numbers["backdoor, 2 malicious, iid, FedAvg", "success"] == "0.993 ± 0.009"
    assert numbers["backdoor, 2 malicious, Dir(0.1), MultiKrum", "success"] == "0.761 ± 0.338"
    assert numbers["label flip, 3 malicious, Dir(0.1), MultiKrum", "accuracy"] == "0.437 ± 0.168"
    assert numbers["Gaussian, 2 malicious, Dir(0.5), FedAvg", "accuracy"] == "0.608 ± 0.155"


@pytest.mark.parametrize("name", BY_NAME)
def test_every_run_is_as_in_the_code(name: str) -> None:
    experiment = BY_NAME[name]
    spec = experiment.group(Machine(), 0)
    problem, schedule = spec.problem, spec.problem.schedule
    assert (schedule.rounds, schedule.batch_size, schedule.local_epochs, schedule.lr) == (40, 32, 1, 0.01)
    assert (schedule.client_optimizer, schedule.momentum, schedule.momentum_form) == ("momentum", 0.9, "sum")
    assert (schedule.participation, schedule.weight_decay, schedule.augment) == (1.0, 0.0, ("crop", "flip"))
    assert (problem.dataset, problem.clients, problem.corrupted) == ("fashion-mnist", 10, experiment.attackers)
    assert problem.corrupted_data == "shard"  # attackers are clients like others
    options: Any = problem.partition_options
    if experiment.alpha is None:
        assert options.samples == 4800
    else:
        assert (options.alpha, options.balanced) == (experiment.alpha, True)
    assert (spec.defense.name, len(spec.defense.rest)) == ("fedavg", int(experiment.rule != "FedAvg"))
    (threat,) = spec.threats
    assert threat.knows == "own"


def test_the_server_trims_and_keeps_what_the_study_s_does() -> None:
    def assumed(rule: str, attack: str, attackers: int) -> int:
        spec = Experiment(rule, attack, attackers, None).group(Machine(), 0)
        return spec.problem.assumed_corrupted_or_default

    assert [assumed("MultiKrum", "backdoor", n) for n in (1, 2)] == [1, 2]
    assert [assumed("TrimmedMean", "backdoor", n) for n in (1, 2)] == [2, 2]
    assert [assumed("TrimmedMean", "label flip", n) for n in (1, 2, 3)] == [1, 2, 3]


def test_attacks_are_the_study_s() -> None:
    specs = {name: Experiment("FedAvg", name, 2, None).group(Machine(), 0).attack for name in flower.ATTACKS}
    options: dict[str, Any] = {name: spec.options for name, spec in specs.items() if spec is not None}
    backdoor = options["backdoor"]
    assert (backdoor.size, backdoor.share, backdoor.target, backdoor.scale) == (3, 0.15, 1, 1.0)
    assert (options["label flip"].labels, options["label flip"].target) == ("one", 2)
    assert options["Gaussian"].std == 0.5


def test_the_network_is_the_study_s() -> None:
    problem = Experiment("FedAvg", "backdoor", 2, None).group(Machine(), 0).problem
    module = find("model", problem.model).load()(problem.model_options).module((1, 28, 28), 10)
    assert sum(p.numel() for p in module.parameters()) == 80_202


@pytest.mark.parametrize("name", ["backdoor, 2 malicious, iid", "Gaussian, 2 malicious, Dir(0.5)"])
def test_a_short_run_on_digits_gives_a_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Experiment.group

    def short(self: Experiment, machine: Machine, seed: int) -> GroupSpec:
        spec = whole(self, machine, seed)
        schedule = replace(spec.problem.schedule, rounds=1)
        problem = replace(spec.problem, dataset="digits", model="mlp", schedule=schedule)
        return replace(spec, problem=replace(problem, model_options=find("model", "mlp").parse({"widths": "8"})))

    monkeypatch.setattr(Experiment, "group", short)
    monkeypatch.setattr(flower, "TRAINED", 64)
    for rule in flower.RULES:
        (row,) = TABLE.rows(f"{name}, {rule}", Machine(), 0, lambda share, text: None)
        assert set(TABLE.measured) <= set(row)
        assert 0 <= row["accuracy"] <= 1
        assert (row["success"] is None) is not name.startswith("backdoor")
