"""What is said of poisoned runs: each reason once, intervals, and where there was nothing to break."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fedarena.goals.integrity_table import conclusion, pairing_table, unweighed
from fedarena.records.schema import Record

SELECTS = {"honest_rejected": 0.5}


def record(defense: str, knows: str, accuracy: float | None, seed: int = 0, clean: float = 0.9, **more: Any) -> Record:
    """One run; without an accuracy it has no result."""
    ok = {"status": "ok", "reason": "", "metrics": {} if accuracy is None else {"accuracy": accuracy}}
    none = {"status": "n/a", "reason": "there is nothing to do", "metrics": {}}
    made = {
        "defense": defense,
        "attacker_knowledge": knows,
        "reading": "",
        "seed": seed,
        "key": f"{defense}{knows}{seed}",
    }
    made |= none if knows and accuracy is None else ok
    return {
        **made,
        "goal": "",
        "options": {"defense": {}},
        "tuned": {},
        "utility": {"clean_accuracy": clean, "chance": 0.1, "measure": "accuracy", "references": {}},
        **more,
    }


def told(*records: Record) -> tuple[str, ...]:
    return conclusion(records, "krum", "flip")


def clean(seed: int = 0, krum: float = 0.8) -> list[Record]:
    return [record("fedavg", "", None, seed), record("krum", "", None, seed, clean=krum)]


def test_the_verdict_is_on_the_knowledge_that_harms_most() -> None:
    own = [record("fedavg", "own", 0.3), record("krum", "own", 0.75)]
    every = [record("fedavg", "omniscient", 0.4), record("krum", "omniscient", 0.2)]
    assert told(*clean(), *own, *every) == (
        "With flip, corrupted clients that know all honest uploads take krum from 80 % to 20 % accuracy and FedAvg "
        "from 90 % to 40 %.",
        "With flip, corrupted clients that know only their own data take krum from 80 % to 75 % accuracy and FedAvg "
        "from 90 % to 30 %.",
    )
    assert "know only their own data" in told(*clean(), record("krum", "own", 0.1), *every)[0]


def test_a_trigger_that_works_is_harm_though_the_accuracy_stays() -> None:
    rates = {"own": 0.9, "omniscient": 0.1}
    made = [
        record("krum", knows, 0.8, metrics={"accuracy": 0.8, "attack_success_rate": rate, "clean_success_rate": 0.0})
        for knows, rate in rates.items()
    ]
    assert "know only their own data" in told(*clean(), *made)[0]


def test_a_reason_for_no_result_stands_there_once() -> None:
    nothing = [record(d, knows, None) for knows in ("own", "omniscient") for d in ("fedavg", "krum")]
    assert told(*clean(), *nothing) == ("flip gave no result; the reasons stand below the table.",)
    assert pairing_table([*clean(), *nothing], "krum", "flip").notes == ("there is nothing to do",)
    against_fedavg_alone = told(*clean(), record("fedavg", "own", 0.3), record("krum", "own", None))
    assert against_fedavg_alone == ("flip gave no result; the reasons stand below the table.",)


def test_several_seeds_give_intervals_within_nothing_and_all() -> None:
    records = [*clean(0, 0.99), *clean(1, 0.91), record("krum", "own", 0.2, 0), record("krum", "own", 0.21, 1)]
    verdict, remark = told(*records)
    assert "take krum from 95 % (44 to 100 %) to 20 ± 6 % accuracy" in verdict
    assert remark == "Intervals: 95 % confidence over seeds."
    assert len(told(*(r for r in records if r["seed"] == 0))) == 1


def test_harm_that_has_passed_is_told() -> None:
    worse, equal = ({"accuracy": 0.75, "window_accuracy": w} for w in (0.3, 0.74))
    told_worse = told(*clean(), record("krum", "own", 0.75, metrics=worse))
    assert "take krum from 80 % to 30 % accuracy in the worst rounds." in told_worse[0]
    assert "worst" not in told(*clean(), record("krum", "own", 0.75, metrics=equal))[0]
    fallen = record("krum", "own", 0.5, metrics={"accuracy": 0.5, "window_accuracy": 0.7})
    both = told(*clean(), record("fedavg", "own", 0.75, metrics=worse), fallen)
    assert both[0].endswith("take krum from 80 % to 50 % accuracy in the worst rounds and FedAvg from 90 % to 30 %.")


def test_the_verdict_is_on_the_trigger_where_that_is_the_larger_harm() -> None:
    metrics = {"accuracy": 0.8, "attack_success_rate": 0.97, "clean_success_rate": 0.04}
    assert told(*clean(), record("krum", "own", 0.8, metrics=metrics)) == (
        "With flip, corrupted clients that know only their own data make their trigger work on 97 % of inputs under "
        "krum (4 % without poisoning).",
        "With flip, corrupted clients that know only their own data take krum from 80 % to 80 % accuracy.",
    )
    weak = metrics | {"accuracy": 0.1, "attack_success_rate": 0.3}
    lost, trigger = told(*clean(), record("krum", "own", 0.1, metrics=weak))
    assert "take krum from 80 % to 10 %" in lost
    assert "trigger work on 30 %" in trigger


@pytest.mark.parametrize(
    ("accuracies", "said", "place"),
    [
        ((0.13, 0.11), "the accuracy of krum (12 %) is not clearly better than", 0),
        ((0.8, 0.11), "the accuracy of krum (11 % on 1 of 2 seeds) is not clearly better than", 0),
        ((0.8, 0.8, 0.11), "the accuracy of krum (11 % on 1 of 3 seeds) is not clearly better than", 1),
        ((0.8, 0.16), "", 0),
    ],
)
def test_a_model_that_learned_nothing_has_nothing_to_lose(accuracies: tuple[float, ...], said: str, place: int) -> None:
    """Where that is so on half of the seeds or more, it is the verdict; else a remark."""
    records = [r for seed, a in enumerate(accuracies) for r in (*clean(seed, a), record("krum", "own", 0.1, seed))]
    sentences = told(*records)
    beaten = "not clearly better than what can be had without a federation (10 %)"
    assert sum(beaten in sentence for sentence in sentences) == bool(said)
    assert said in sentences[place]


@pytest.mark.parametrize(("clean_accuracy", "said"), [(0.11, "uninformative: its clean run gains nothing"), (0.8, "")])
def test_no_cell_calls_a_model_that_learned_nothing_recovered(clean_accuracy: float, said: str) -> None:
    attacked = record("krum", "own", 0.1, metrics={"accuracy": 0.1, "rounds_to_recover": 0.0})
    table = pairing_table([*clean(krum=clean_accuracy), attacked], "krum", "flip")
    lines = next(cells for knows, cells in table.rows if knows == "own")[1].lines
    assert lines[-1] == (said or "always within 5 % of the honest run, once that has learned")


def test_both_models_at_chance_make_one_sentence() -> None:
    records = [record("fedavg", "", None, clean=0.1), record("krum", "", None, clean=0.11), record("krum", "own", 0.1)]
    assert (
        "Even without poisoning the accuracy of FedAvg (10 %) and krum (11 %) is not clearly better than"
        in told(*records)[0]
    )


@pytest.mark.parametrize("krum", [0.8, 0.11])
@pytest.mark.parametrize("success", [0.2, 0.9])
def test_every_sentence_is_one(krum: float, success: float) -> None:
    """Each of one full stop, of at most fifty words, for models that have learned and for one at chance."""
    metrics = {"accuracy": 0.5, "window_accuracy": 0.2, "attack_success_rate": success, "clean_success_rate": 0.1}
    seeds = [r for seed in (0, 1) for r in clean(seed, krum)]
    attacked = [
        record(defense, knows, 0.5, seed, metrics=metrics)
        for defense in ("krum", "fedavg")
        for knows in ("own", "omniscient")
        for seed in (0, 1)
    ]
    sentences = told(*seeds, *attacked)
    for sentence in sentences:
        assert re.findall(r"[.!?](?=\s|$)", sentence) == ["."]
        assert sentence.endswith(".")
        assert len(sentence.split()) <= 50
    assert sentences[0].startswith("With flip, corrupted clients" if krum > 0.5 else "Even without poisoning")
    assert [sentence.startswith("With flip") for sentence in sentences].count(True) == 4


def test_the_reason_why_no_upload_has_a_weight() -> None:
    rule = {"options": {"defense": {}, "defense+median": {}}}
    assert "a coordinate-wise rule selects no uploads" in unweighed([record("median", "own", 0.3, **rule)], "median")
    assert "the protocol does not report" in unweighed([record("noisy", "own", 0.3)], "noisy")
    selects = record(
        "krum", "own", 0.3, metrics={"accuracy": 0.3, **SELECTS}, options={"defense": {}, "defense+krum": {}}
    )
    assert unweighed([selects], "krum") == ""
    assert unweighed([record("median", "own", None, **rule)], "median") == ""
