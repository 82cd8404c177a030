"""Poisoned runs as records: scored against the run in which everybody is honest, the same for any worker count."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest

from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.registry import find
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import VOLATILE, Record
from fedarena.runs import engine
from fedarena.runs.engine import run_groups
from fedarena.runs.trial import prepare_together

MODEL = find("model", "mlp").parse({"widths": "32"})
FEW = find("partition", "few").parse({"samples": "24"})
"""So few samples that clients do much worse alone."""


def groups(
    defense: str, attack: str, knows: Knowledge = "own", options: dict[str, str] | None = None, **change: Any
) -> list[GroupSpec]:
    schedule = Schedule(**{"rounds": 60, "batch_size": 16, "lr": 0.4, "eval_every": 20, **change})
    problem = ProblemSpec(
        "digits",
        model="mlp",
        partition="few",
        partition_options=FEW,
        clients=10,
        model_options=MODEL,
        schedule=schedule,
        corrupted=3,
    )
    method, found = compose.parse_attack(attack, options), []
    for one in dict.fromkeys((compose.parse_defense(defense), compose.parse_defense("fedavg"))):
        found.append(GroupSpec(problem, defense=one, attack=None, threats=(), seed=0, probe=method))
        found.append(
            GroupSpec(problem, defense=one, attack=method, threats=(Threat("client", "paper", knows=knows),), seed=0)
        )
    return found


def records_of(made: list[GroupSpec], jobs: int = 1) -> list[Record]:
    return [r for result in run_groups(made, jobs) for r in result.records]


def poisoned(records: list[Record], defense: str) -> Record:
    (found,) = [r for r in records if r["defense"] == defense and r["attacker_knowledge"]]
    return found


def test_an_attack_is_scored_against_the_same_honest_federation() -> None:
    records = records_of(groups("krum", "sign-flip", options={"scale": "5"}))
    assert [(r["defense"], r["attack"], r["attacker_knowledge"]) for r in records] == [
        ("krum", "none", ""),
        ("krum", "sign-flip", "own"),
        ("fedavg", "none", ""),
        ("fedavg", "sign-flip", "own"),
    ]
    plain, defended = poisoned(records, "fedavg"), poisoned(records, "krum")
    for attacked, clean in ((plain, records[2]), (defended, records[0])):
        assert attacked["utility"]["clean_accuracy"] == clean["utility"]["clean_accuracy"]
        drop = clean["utility"]["clean_accuracy"] - attacked["metrics"]["accuracy"]
        assert attacked["metrics"]["accuracy_drop"] == pytest.approx(drop)
        assert attacked["attacked"]["curve"][-1][1] == attacked["metrics"]["accuracy"]
        assert len(attacked["attacked"]["by_round"]["corrupted_weight"]) == 60
    assert plain["scores"]["integrity"] < 0.4
    assert defended["scores"]["integrity"] > 0.8
    assert plain["metrics"]["corrupted_weight"] == pytest.approx(0.3, abs=0.01)
    assert defended["metrics"]["corrupted_rejected"] == 1.0


def test_the_same_records_whatever_the_number_of_workers() -> None:
    texts = []
    for jobs in (1, 2):
        records = copy.deepcopy(records_of(groups("median", "gaussian", options={"std": "1"}, rounds=20), jobs))
        for record in records:
            for path in VOLATILE:
                *parents, last = path.split(".")
                node: Any = record
                for name in parents:
                    node = node[name]
                node.pop(last, None)
        texts.append(canonical(records))
    assert texts[0] == texts[1]
    assert len({r["key"] for r in records}) == 4


def test_a_backdoor_is_scored_by_its_trigger_beside_the_clean_model_s() -> None:
    records = records_of(groups("fedavg", "pixel-trigger", rounds=120))
    attacked, clean = poisoned(records, "fedavg"), records[0]
    assert attacked["metrics"]["clean_success_rate"] == clean["metrics"]["attack_success_rate"] < 0.2
    assert attacked["metrics"]["attack_success_rate"] > 0.5
    assert attacked["scores"]["integrity"] < 0.5
    other = records_of(groups("fedavg", "pixel-trigger", options={"target": "3"}, rounds=20))[0]
    same = records_of(groups("fedavg", "pixel-trigger", rounds=20))[0]
    assert other["key"] != same["key"]  # the honest model is tried with another trigger


def test_an_attack_that_cannot_start_says_why() -> None:
    record = poisoned(records_of(groups("fedavg", "optimized", "omniscient")), "fedavg")  # 3 > √7
    assert record["status"] == "ok"
    few = groups("fedavg", "optimized", "omniscient")
    for i, group in enumerate(few):
        problem = ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=10,
            model_options=MODEL,
            schedule=group.problem.schedule,
            corrupted=2,
        )
        few[i] = GroupSpec(
            problem, defense=group.defense, attack=group.attack, threats=group.threats, seed=0, probe=group.probe
        )
    record = poisoned(records_of(few), "fedavg")
    assert record["status"] == "n/a"
    assert record["reason"]
    assert record["scores"] == {}


def test_a_strike_is_seen_at_its_end_and_counted_from_its_beginning() -> None:
    """Looks every 20 rounds do not see two strikes of four rounds, which end after 34 and after 50."""
    pulses = {"turn": "0.5", "burn_rounds": "4", "bank_rounds": "12", "strike": "ascent"}
    record = poisoned(records_of(groups("fedavg", "bank", options=pulses)), "fedavg")
    assert record["attacked"]["begins"] == 30
    assert [rounds for rounds, *_ in record["attacked"]["curve"]] == [20, 34, 40, 50, 60]


def test_a_model_that_is_driven_out_of_the_numbers_is_a_result() -> None:
    record = poisoned(records_of(groups("fedavg", "ipm", options={"epsilon": "1000"})), "fedavg")
    assert record["status"] == "ok"
    assert "not finite" in record["reason"]
    assert record["scores"]["integrity"] < 0.1


def test_a_run_that_chooses_its_strength_says_what_it_tried() -> None:
    records = records_of(groups("median", "ipm", options={"tune": "3", "tune_rounds": "15"}))
    tuned = poisoned(records, "median")["tuned"]
    assert tuned["options"] == ["epsilon"]
    assert len(tuned["tried"]) == 3
    assert len({tuple(values) for values, _ in tuned["tried"]}) == 3
    worst = max(tuned["tried"], key=lambda row: row[1])
    assert tuned["chosen"] == worst[0]
    untuned = poisoned(records_of(groups("median", "ipm", options={"epsilon": str(worst[0][0])})), "median")
    assert untuned["metrics"] == poisoned(records, "median")["metrics"]
    assert untuned["tuned"] == {}
    ran_with = {"epsilon": worst[0][0], "tune": 3, "tune_rounds": 15}
    assert tuned["ran_with"] == {"attack": ran_with}
    assert poisoned(records, "median")["options"]["attack"]["epsilon"] == 10.0  # what was given, for the key


def test_an_attack_and_its_wrapper_are_tuned_one_after_the_other() -> None:
    record = poisoned(records_of(groups("median", "delayed+ipm", options={"tune": "3", "tune_rounds": "6"})), "median")
    tuned = record["tuned"]
    assert tuned["options"] == ["epsilon", "start"]
    assert tuned["tried"][0][0] == [10.0, 0.2]  # what was given
    assert len(tuned["tried"]) <= 5  # three strengths, then two other times
    strengths = {tuple(values) for values, _ in tuned["tried"] if values[1] == 0.2}
    assert len(strengths) == 3
    strongest = max((row for row in tuned["tried"] if row[0][1] == 0.2), key=lambda row: row[1])
    assert tuned["chosen"][0] == strongest[0][0]
    assert {values[0] for values, _ in tuned["tried"] if values[1] != 0.2} == {strongest[0][0]}
    assert max(tuned["tried"], key=lambda row: row[1])[0] == tuned["chosen"]
    ran_with = tuned["ran_with"]
    assert ran_with.keys() == {"attack", "attack+ipm"}
    assert [ran_with["attack+ipm"]["epsilon"], ran_with["attack"]["start"]] == tuned["chosen"]
    rounds = record["attacked"]["curve"][-1][0]
    assert record["attacked"]["begins"] == math.ceil(tuned["chosen"][1] * rounds)


def test_a_wrapper_tunes_its_time_around_an_attack_that_tunes_nothing() -> None:
    record = poisoned(
        records_of(groups("median", "delayed+label-flip", options={"tune": "2", "tune_rounds": "4"})), "median"
    )
    assert record["tuned"]["options"] == ["start"]
    assert len(record["tuned"]["tried"]) == 2


def test_eq10_chooses_its_strength_where_the_paper_s_is_not_defined() -> None:
    few = groups("fedavg", "optimized", "omniscient", options={"tune": "4", "tune_rounds": "6"})
    few = [replace(g, problem=replace(g.problem, corrupted=2)) for g in few]  # 2 ≤ √8
    record = poisoned(records_of(few), "fedavg")
    assert record["status"] == "ok"
    tried = record["tuned"]["tried"]
    assert [values[0] for values, _ in tried] == [None, 0.0, 2.0, 50.0]
    assert record["tuned"]["chosen"] == max(tried, key=lambda row: row[1])[0]


def test_a_poisoned_run_is_complete_when_its_federation_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only when all are: a refusal of a later one leaves what was there before."""
    made, written = groups("krum", "sign-flip", rounds=4), []
    calls: list[int] = []

    def refusing(specs: list[GroupSpec], *more: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == 4:
            raise UserError("no")
        return prepare_together(specs, *more)

    monkeypatch.setattr(engine, "prepare_together", refusing)
    made = [made[2], made[1], made[0], made[3]]  # FedAvg, krum attacked, krum, FedAvg attacked: the second one waits
    with pytest.raises(UserError, match="no"):
        run_groups(made, 1, finished=lambda records, pictures: written.extend(records))
    assert [(r["defense"], r["attack"]) for r in written] == [
        ("fedavg", "none"),
        ("krum", "none"),
        ("krum", "sign-flip"),
    ]
    assert "accuracy_drop" in written[2]["metrics"]
    assert all(r["utility"]["fedavg_accuracy"] == written[0]["utility"]["clean_accuracy"] for r in written)


def test_a_poisoned_run_without_its_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="without the same run unattacked"):
        run_groups(groups("fedavg", "sign-flip", rounds=2)[1:], 1)


def test_the_untrained_model_is_evaluated_only_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def untrained(problem: Any) -> Any:
        asked.append(problem)
        return original(problem)

    original = federation.untrained
    monkeypatch.setattr(federation, "untrained", untrained)
    records_of(groups("fedavg", "sign-flip", rounds=2))
    assert not asked
    assert poisoned(records_of(groups("fedavg", "rank-map+sign-flip", rounds=2)), "fedavg")["status"] == "n/a"
    assert len(asked) == 1
