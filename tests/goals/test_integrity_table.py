"""What is said of poisoned runs: each reason once, intervals, and where there was nothing to break."""

from __future__ import annotations

from typing import Any

import pytest

from fedarena.goals.integrity_table import pairing_table, unweighed, verdict
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


def told(*records: Record) -> str:
    return verdict(records, "krum", "flip")


def clean(seed: int = 0, krum: float = 0.8) -> list[Record]:
    return [record("fedavg", "", None, seed), record("krum", "", None, seed, clean=krum)]


def test_one_sentence_for_each_knowledge() -> None:
    own = [record("fedavg", "own", 0.3), record("krum", "own", 0.75)]
    assert told(*clean(), *own, record("krum", "omniscient", 0.2)) == (
        "With their own data only, flip takes FedAvg from 90 % to 30 % accuracy and takes krum from 80 % to 75 % "
        "accuracy. With all honest uploads known, flip takes krum from 80 % to 20 % accuracy."
    )


def test_a_reason_for_no_result_stands_there_once() -> None:
    nothing = [record(d, knows, None) for knows in ("own", "omniscient") for d in ("fedavg", "krum")]
    text = told(*clean(), *nothing)
    assert text.count("there is nothing to do") == 1
    assert text == (
        "flip gives no result against FedAvg and krum with their own data only, nor against FedAvg and krum with all "
        "honest uploads known: there is nothing to do."
    )
    nothing[0]["reason"] = "another one"
    text = told(*clean(), *nothing)
    assert "against FedAvg with their own data only: another one." in text
    assert "against krum with their own data only, nor against FedAvg and krum with all honest" in text


def test_several_seeds_give_intervals_within_nothing_and_all() -> None:
    records = [*clean(0, 0.99), *clean(1, 0.91), record("krum", "own", 0.2, 0), record("krum", "own", 0.21, 1)]
    text = told(*records)
    assert "takes krum from 95 % (44 to 100 %) to 20 ± 6 % accuracy" in text
    assert text.endswith("Intervals: 95 % confidence over seeds.")
    assert "Intervals" not in told(*(r for r in records if r["seed"] == 0))


def test_harm_that_has_passed_is_told() -> None:
    worse, equal = ({"accuracy": 0.75, "window_accuracy": w} for w in (0.3, 0.74))
    told_worse = told(*clean(), record("krum", "own", 0.75, metrics=worse))
    assert "takes krum from 80 % to 75 % accuracy (30 % in the worst 10% of the rounds)." in told_worse
    assert "worst" not in told(*clean(), record("krum", "own", 0.75, metrics=equal))


def test_a_trigger_is_told_beside_the_honest_model_s() -> None:
    metrics = {"accuracy": 0.8, "attack_success_rate": 0.97, "clean_success_rate": 0.04}
    text = told(*clean(), record("krum", "own", 0.8, metrics=metrics))
    assert "to 80 % accuracy, with the trigger working on 97 % (honest model: 4 %)." in text


@pytest.mark.parametrize(
    ("accuracies", "said"),
    [
        ((0.13, 0.11), "the accuracy of krum (12 %) is no better than"),
        ((0.8, 0.11), "the accuracy of krum (11 % on 1 of 2 seeds) is no better than"),
        ((0.8, 0.16), ""),
    ],
)
def test_a_model_that_learned_nothing_has_nothing_to_lose(accuracies: tuple[float, float], said: str) -> None:
    records = [r for seed, a in enumerate(accuracies) for r in (*clean(seed, a), record("krum", "own", 0.1, seed))]
    text = told(*records)
    assert text.count("no better than what can be had without a federation") == bool(said)
    assert said in text


@pytest.mark.parametrize(("clean_accuracy", "said"), [(0.11, "uninformative: its clean run gains nothing"), (0.8, "")])
def test_no_cell_calls_a_model_that_learned_nothing_recovered(clean_accuracy: float, said: str) -> None:
    attacked = record("krum", "own", 0.1, metrics={"accuracy": 0.1, "rounds_to_recover": 0.0})
    table = pairing_table([*clean(krum=clean_accuracy), attacked], "krum", "flip")
    lines = next(cells for knows, cells in table.rows if knows == "own")[1].lines
    assert lines[-1] == (said or "always within 5 % of the honest run, once that has learned")


def test_both_models_at_chance_make_one_sentence() -> None:
    records = [record("fedavg", "", None, clean=0.1), record("krum", "", None, clean=0.11), record("krum", "own", 0.1)]
    assert "Even without poisoning the accuracy of FedAvg (10 %) and krum (11 %) is no better than" in told(*records)


def test_the_reason_why_no_upload_has_a_weight() -> None:
    rule = {"options": {"defense": {}, "defense+median": {}}}
    assert "a coordinate-wise rule selects no uploads" in unweighed([record("median", "own", 0.3, **rule)], "median")
    assert "the protocol does not report" in unweighed([record("noisy", "own", 0.3)], "noisy")
    selects = record(
        "krum", "own", 0.3, metrics={"accuracy": 0.3, **SELECTS}, options={"defense": {}, "defense+krum": {}}
    )
    assert unweighed([selects], "krum") == ""
    assert unweighed([record("median", "own", None, **rule)], "median") == ""
