"""The table of all inference attacks: which pairings, what a row says, how it is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedarena.cli import main
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Poisoning
from fedarena.core import registry
from fedarena.core.text.numbers import mean
from fedarena.core.threat import FORMS, PARTIES
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, threats
from fedarena.problem.spec import usual_problem
from fedarena.reproduce import measured_with
from fedarena.reproduce.inference import digits as inference_digits
from fedarena.reproduce.inference.digits import ATTACKS, DEFENSES, SHORT, compact, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES
from fedarena.runs.engine import run_groups

FEW = {"attack": {"rounds": "4"}, "training": {"rounds": "6"}}


def expect_progress(share: float, text: str) -> None:
    assert 0 <= share <= 1
    assert text


def found(name: str, defense: str, **settings: Any) -> list[dict[str, Any]]:
    return measure(name, defense, Machine(), 0, expect_progress, settings or FEW)


def test_every_inference_attack_is_in_it_and_no_other() -> None:
    for name in registry.registries()["attack"].names():
        made = registry.find("attack", name).load()
        assert issubclass(made, Inference if name in ATTACKS else Poisoning)
    assert len(set(inference_digits.TABLE.pieces)) == len(inference_digits.TABLE.pieces) == len(ATTACKS) * len(DEFENSES)
    assert set(SHORT) <= set(ATTACKS)
    assert TABLES["inference/digits"] == inference_digits.__name__


@pytest.mark.parametrize("attack", sorted(SHORT))
def test_what_is_shortened_is_allowed(attack: str) -> None:
    card = registry.find("attack", attack)
    shortened = usual_problem({"dataset": "digits"}, SHORT[attack], (card,)).schedule
    made = compose.parse_attack(attack, SHORT[attack].get("attack", {}))
    watch = card.load()(made.options).watch(shortened)
    assert 0 <= watch.first <= max(watch.victims, default=watch.first) < shortened.rounds


def test_a_row_is_what_bench_run_measures() -> None:
    rows = found("joint-membership", "dbcl")
    assert list(dict.fromkeys((r["party"], r["form"]) for r in rows)) == [(p, f) for p in PARTIES for f in FORMS]
    assert [r["reading"] for r in rows if (r["party"], r["form"]) == ("client", "paper")] == ["option-I", "option-II"]
    cards = registry.find("attack", "joint-membership"), registry.find("defense", "dbcl")
    problem, made = usual_problem({}, FEW, cards), compose.parse_attack("joint-membership", FEW["attack"])
    groups = [
        GroupSpec(problem, defense=measured_with.defense(d), attack=made, threats=threats(PARTIES, FORMS), seed=0)
        for d in ("dbcl", "fedavg")
    ]
    records = run_groups(groups, 1)[0].records
    for row in rows:
        (own,) = (r for r in records if all(r[name] == row[name] for name in ("party", "form", "reading")))
        assert (row["metric"], row["value"]) == ("auc", own["metrics"]["auc"])
        assert row["leak"] == own["scores"]["leak"]
        assert row["accuracy"] == own["utility"]["clean_accuracy"]
        assert (row["status"], row["reason"]) == ("ok", "")
        assert row["cpu_seconds"] > 0


def test_a_cell_without_a_number_has_a_reason() -> None:
    for row in found("gradient-estimate", "two-stage"):
        assert (row["value"] is None) == (row["party"] == "client")
        if row["party"] == "client":
            assert (row["status"], row["leak"]) == ("n/a", None)
            assert "no client knows" in row["reason"]


def test_what_is_known_before_an_attack_is_no_result_of_it() -> None:
    """The estimate's cosine is measured of a batch that is too large to be reconstructed."""
    for row in found("dlg", "fedavg", attack={"victims": "1"}, training={"rounds": "3", "batch_size": "16"}):
        assert row["value"] is None
        assert row["status"] == "n/a"
        assert "samples" in row["reason"]


def test_a_problem_that_is_refused_says_why_in_every_row() -> None:
    rows = found("dlg", "fedavg", attack={"start": "9"}, training={"rounds": "3"})
    assert len(rows) == 6
    for row in rows:
        assert row["status"] == "refused"
        assert row["reason"].startswith("attack dlg: option 'start' is 9")
        assert row["accuracy"] is None


# -- in print ------------------------------------------------------------------------------------------


def row(**changes: Any) -> dict[str, Any]:
    made = {
        "seed": 0,
        "attack": "a",
        "party": "server",
        "defense": "fedavg",
        "form": "paper",
        "metric": "auc",
        "value": 0.5,
        "leak": 0.0,
        "status": "ok",
        "reason": "",
        "reading": "upload",
        "accuracy": 0.9,
        "cpu_seconds": 4.0,
    }
    return made | changes


def test_a_line_is_an_attack_and_party_a_column_a_defense_and_form() -> None:
    rows = [row(), row(form="adaptive", value=0.75), row(defense="dbcl", value=0.6), row(party="client", value=0.25)]
    lines, notes = compact(rows)
    empty = {"fedavg\nadaptive": "", "dbcl\npaper": "", "dbcl\nadaptive": ""}
    server = {"fedavg\npaper": "0.50", "fedavg\nadaptive": "0.75", "dbcl\npaper": "0.60", "dbcl\nadaptive": ""}
    assert lines == [
        {"attack": "a", "as the": "server", "by": "auc", **server},
        {"attack": "a", "as the": "client", "by": "auc", "fedavg\npaper": "0.25", **empty},
    ]
    assert notes == ["2 pieces, 8 s of CPU time in all, 4 s on average; longest: a, fedavg, 4 s."]


def test_reasons_are_noted_once_and_several_seeds_have_an_interval() -> None:
    gone = {"value": None, "leak": None, "status": "n/a", "reason": "why"}
    rows = [
        row(),
        row(seed=1, value=0.7),
        row(form="adaptive", **gone),
        row(form="adaptive", seed=1, status="diverged", reason="how"),
        row(party="client", **gone),
    ]
    (server, client), notes = compact(rows)
    assert server["fedavg\npaper"] == "0.60±1.27"
    assert server["fedavg\nadaptive"] == "0.50 n/a (1) diverged (2)"
    assert client["fedavg\npaper"] == "n/a (1)"
    assert notes[:2] == ["(1) why", "(2) how"]


def test_of_several_readings_the_one_with_the_most_over_all_seeds_is_named() -> None:
    """On either seed alone 'b' would have been picked on one, and 'a' on the other."""
    seeds = {"a": (0.5, 0.7), "b": (0.9, 0.6)}
    rows = [row(seed=s, reading=name, value=v) for name, two in seeds.items() for s, v in enumerate(two)]
    ((line,), notes) = compact(rows)
    assert line["fedavg\npaper"].startswith("0.75±")
    assert line["fedavg\npaper"].endswith(" (1)")
    assert notes[0] == "(1) by 'b', which has the most of 2 readings"
    half = float(line["fedavg\npaper"].split("±")[1].split()[0])
    assert half == pytest.approx(mean([0.9, 0.6], 2).half or 0, abs=0.01)
    assert half > 1.9 * (mean([0.9, 0.6]).half or 0)
    alike, _ = compact([row(reading=name, value=0.7) for name in seeds])
    assert alike[0]["fedavg\npaper"] == "0.70"


def test_what_is_in_clear_has_lines_of_its_own() -> None:
    rows = [
        row(reading="option-I", value=0.6),
        row(reading="option-I, in clear", value=0.8),
        row(form="adaptive", reading="", value=None, status="n/a", reason="why"),
        row(defense="dbcl", value=0.7),
    ]
    (whole, clear), notes = compact(rows)
    assert (whole["as the"], clear["as the"]) == ("server", "server, in clear")
    assert (whole["fedavg\npaper"], clear["fedavg\npaper"]) == ("0.60", "0.80")
    assert whole["fedavg\nadaptive"] == clear["fedavg\nadaptive"] == "n/a (1)"
    assert (whole["dbcl\npaper"], clear["dbcl\npaper"]) == ("0.70", "n/a (2)")
    assert notes[0] == "(1) why"
    assert "in clear" in notes[1]


def test_the_command_prints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_digits, "SHORT", {"last-layer-label": FEW})
    asked = ("--only=last-layer-label, fedavg", "--jobs=1", "--quiet", f"--out={tmp_path}")
    assert main(["reproduce", "inference/digits", *asked]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "last-layer-label server label_accuracy 1.00 1.00" in out
    assert "1 pieces," in out
    assert (tmp_path / "inference-digits-last-layer-label-fedavg.json").exists()
