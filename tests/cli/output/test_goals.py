"""`bench run` and `explain` with attacks after members, labels and models, as a person meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.tables import cell, conclusion, table

from fedarena.cli import main
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.goals import find
from fedarena.goals.pairing_table import Cell
from fedarena.records.schema import Record

SHORT = ("--model=mlp", "--rounds=8", "--batch-size=4", "--set=attack.rounds=6", "--quiet", "--jobs=1")


def bench(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    code = main(list(args))
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def run(attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    return bench("run", "--defense=dbcl", f"--attack={attack}", f"--out={tmp_path}", *SHORT, *more, capsys=capsys)


def test_membership_is_printed_with_interval_and_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(run("joint-membership", tmp_path, capsys).split())
    for said in (
        "by expanded",
        "by smoother",
        "advantage 0.",
        "Without any attack: AUC 0.5. Candidates: ",
        " a cell and seed, half of them members.",
        "Verdict. This is uninformative: the model that dbcl trains here is hardly better than a constant guess (",
        "says nothing about a model that learns. attacker no defense paper form adaptive form",
        " form tells who was in a batch with AUC 0.",
        " without a defense.",
    ):
        assert said in out
    assert "recovered" not in out
    assert "Picture" not in out
    assert not list(tmp_path.glob("*.png"))


def test_labels_are_printed_beside_their_prior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(run("last-layer-label", tmp_path, capsys).split())
    assert "guessing by the classes' frequencies names" in out
    assert "Labels: 24 a cell and seed." in out
    assert (
        "Against dbcl, last-layer-label in adaptive form reads 100 % (86 to 100 %) of the labels as any party, and "
        "100 % (86 to 100 %) without a defense."
    ) in out


def test_a_party_that_cannot_attack_is_not_among_any_party(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one client there is no other whose samples it could be asked about; the outsider makes three all the same."""
    words = ["run", "--defense=fedavg", "--attack=membership-inference", "--rounds=10", "--clients=1", "--quiet"]
    assert main([*words, "--set=attack.shadows=2", "--jobs=1", f"--out={tmp_path}"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "client n/a" in out
    assert "as any party" not in out
    assert "as the server, the eavesdropper and the outsider" in out


def test_models_are_printed_beside_a_constant_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(run("model-extraction", tmp_path, capsys, "--set=attack.history=4").split())
    for said in (
        "by broadcast",
        "in the last round 100 % (99 ",
        "outputs: error 0.00",
        "parameters: cosine 1.00",
        "(1) the server holds its own model",
        "the best constant prediction agrees by",
        "a constant's",
        "Rounds looked at: 6 a cell and seed.",
        "Against dbcl, model-extraction in adaptive form takes a model that agrees with the server's by",
        "and 100 % (99 to 100 %) (a constant: ",
        "Against dbcl, model-extraction in paper form takes",
    ):
        assert said in out
    assert not list(tmp_path.glob("*.png"))


def test_json_holds_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--json", "--seeds=0,1", "--party=server", "--form=adaptive")
    told = json.loads(run("joint-membership", tmp_path, capsys, *more))["records"]
    assert [(r["defense"], r["seed"]) for r in told] == [("dbcl", 0), ("fedavg", 0), ("dbcl", 1), ("fedavg", 1)]
    for r in told:
        assert 0 <= r["metrics"]["auc_low"] <= r["metrics"]["auc"] <= r["metrics"]["auc_high"] <= 1
        assert r["scores"]["privacy"] == pytest.approx(1 - max(0.0, r["metrics"]["advantage"]))


def test_explain_says_what_the_attack_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(bench("explain", "dbcl", "joint-membership", "--model=mlp", "--json", capsys=capsys))
    for party in told["parties"]:  # the usual batch of this attack is 4
        assert party["given"].endswith("8 candidates an observation at most: half its samples, half held out, shuffled")
    told = json.loads(bench("explain", "dbcl", "last-layer-label", "--model=mlp", "--json", capsys=capsys))
    assert not any("candidates" in party["given"] for party in told["parties"])


def test_explain_says_what_is_made_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(bench("explain", "dbcl", "model-extraction", "--model=mlp", "--json", capsys=capsys))
    given = {(p["party"], p["form"]): p["given"] for p in told["parties"]}
    assert given["server", "paper"] == "n/a: the server holds its own model"
    assert given["client", "adaptive"] == "broadcast: a model of 6 tensors, 55,210 numbers"
    assert not any("match" in text for text in given.values())


# -- words ---------------------------------------------------------------------------------------------


def record(seed: int = 0, **changes: Any) -> dict[str, Any]:
    made = {
        "defense": "dbcl",
        "goal": "membership",
        "party": "server",
        "form": "adaptive",
        "reading": "upload",
        "seed": seed,
        "status": "ok",
        "reason": "",
        "metrics": {"auc": 0.8, "advantage": 0.6, "auc_low": 0.7, "auc_high": 0.9, "candidates": 200.0},
        "utility": {"clean_accuracy": 0.9, "fedavg_accuracy": 0.9, "chance": 0.1},
        "key": f"k{seed}",
    }
    return made | changes


def lines(told: Cell, goal: str = "membership") -> list[str]:
    return find(goal).text.lines(told)


def baseline(told: list[Record]) -> str:
    return " ".join(find(told[0]["goal"]).text.baseline(told))


def auc(value: float) -> dict[str, float]:
    return {"auc": value, "advantage": 2 * value - 1, "auc_low": value - 0.1, "auc_high": value + 0.1}


def test_the_interval_is_over_seeds_where_there_are_several() -> None:
    one = cell([record()])
    two = cell([record(0, metrics=auc(0.8)), record(1, metrics=auc(0.82))])
    assert one is not None
    assert two is not None
    assert lines(one)[0] == "AUC 0.80 (0.70 to 0.90)"
    assert lines(two)[0] == "AUC 0.81 (0.68 to 0.94)"  # t(1) is 12.7


def test_without_an_interval_none_is_shown() -> None:
    bare = cell([record(metrics={"auc": 0.8, "advantage": 0.6})])
    assert bare is not None
    assert lines(bare)[0] == "AUC 0.80"


def test_the_worst_reading_is_the_one_that_tells_most() -> None:
    of_members = cell([record(reading="a", metrics=auc(0.6)), record(reading="b", metrics=auc(0.7))])
    assert of_members is not None
    assert of_members.reading == "b"
    told = [record(goal="labels", reading=n, metrics={"label_accuracy": v}) for n, v in (("a", 0.9), ("b", 0.2))]
    of_labels = cell(told)
    assert of_labels is not None
    assert of_labels.reading == "a"


def test_the_verdict_of_an_undefended_run() -> None:
    told = [record(defense="fedavg"), record(defense="fedavg", party="client")]
    assert conclusion(table(told, "fedavg"), told, "fedavg", "joint-membership") == (
        "Without a defense, joint-membership in adaptive form tells who was in a batch with AUC 0.80 (0.70 to 0.90) "
        "as the server and the client.",
    )


def test_labels_of_a_reconstruction_keep_its_words() -> None:
    metrics = {"recovered": 1.0, "ssim": 1.0, "label_accuracy": 1.0}
    told = [record(defense="fedavg", goal="reconstruction", metrics={**metrics, "psnr": 40.0})]
    said = conclusion(table(told, "fedavg"), told, "fedavg", "dlg")
    assert said == ("Without a defense, dlg in adaptive form recovers 100 % of the images as the server.",)
    assert baseline(told) == ""
    assert lines(cell(told), "reconstruction") == ["recovered 100 %", "SSIM 1.00, PSNR 40.0 dB", "labels 100 %"]  # type: ignore[arg-type]


def test_a_reconstruction_of_texts_speaks_of_words() -> None:
    of_words = {"token_accuracy": 0.9, "rouge_1": 0.91, "rouge_2": 0.8, "rouge_l": 0.905, "exact": 0.5}
    priors = {"token_accuracy": 0.15, "rouge_l": 0.2, "recovered": 0.0, "mse": 0.01}
    known = {f"prior_{name}_{key}": v for name in ("mean", "nearest") for key, v in priors.items()}
    metrics = {
        "identified": 1.0,
        "identified_chance": 0.01,
        "images": 4.0,
        "recovered": 0.5,
        "psnr": 40.0,
        "decoys": 9.0,
    }
    metrics |= {"decoys_same_class": 1.0, "recovered_below": 0.003, "prior_mean_identified": 0.0, "label_accuracy": 1.0}
    told = [record(defense="fedavg", goal="reconstruction", metrics={**metrics, **of_words, **known})]
    said = conclusion(table(told, "fedavg"), told, "fedavg", "dlg")
    assert said == ("Without a defense, dlg in adaptive form identifies 100 % of the texts as the server.",)
    assert lines(cell(told), "reconstruction") == [  # type: ignore[arg-type]
        "identified 100 % of 4",
        "recovered 50 %",
        "exact 50 %",
        "words 90 %, ROUGE-1/2/L 0.91/0.80/0.91",
        "labels 100 %",
    ]
    assert (
        "the mean training text names 15 % of the words, has ROUGE-L 0.20 and counts as recovered for 0 %"
        in baseline(told)
    )


MODEL = {"agreement": 0.8, "final_agreement": 0.9, "prior_agreement": 0.25, "models": 5.0}
QUALITY = {"stolen_accuracy": 0.5, "server_accuracy": 0.75}


def test_secrets_are_listed_with_their_errors() -> None:
    told = cell(
        [
            record(
                goal="extraction", metrics={**MODEL, **QUALITY, "secret_error_gamma": 0.25, "secret_error_mask.0": 1.5}
            )
        ]
    )
    assert told is not None
    assert lines(told, "extraction") == [
        "agreement 80 %",
        "a constant's 25 %",
        "in the last round 90 %",
        "by true labels 0.50 of 0.75",
        "secret gamma: error 0.25",
        "secret mask.0: error 1.5",
    ]


def test_the_constant_prediction_is_given_as_a_span_where_it_differs() -> None:
    for other, said in ((0.2504, "agrees by 25 % with"), (0.3, "agrees by 25 to 30 % with")):
        assert said in baseline(
            [
                record(goal="extraction", metrics=MODEL),
                record(goal="extraction", metrics={**MODEL, "prior_agreement": other}),
            ]
        )


def test_the_verdict_of_models_taken_without_a_defense() -> None:
    told = [record(defense="fedavg", party=p, goal="extraction", metrics=MODEL) for p in ("client", "eavesdropper")]
    assert conclusion(table(told, "fedavg"), told, "fedavg", "model-extraction") == (
        "Without a defense, model-extraction in adaptive form takes a model that agrees with the server's by 80 % "
        "(a constant: 25 %) as the client and the eavesdropper.",
    )


def test_every_defense_s_model_has_a_constant_of_its_own() -> None:
    """FedAvg's server has learned something, the defended one names one class: their mean would be nobody's."""
    broken = {"agreement": 1.0, "final_agreement": 1.0, "prior_agreement": 1.0, "models": 5.0}
    told = [
        record(defense=name, party="client", goal="extraction", form="adaptive", metrics=metrics)
        for name, metrics in (("fedavg", MODEL), ("pbpfl", broken))
    ]
    (said,) = conclusion(table(told, "pbpfl"), told, "pbpfl", "model-extraction")
    assert "agrees with the server's by 100 % (a constant: 100 %) as the client" in said
    assert said.endswith(", and 80 % (a constant: 25 %) without a defense.")
    assert "says the same of every input: agreement says nothing there" in baseline(told)
    assert "says the same" not in baseline(told[:1])
    nearly = record(goal="extraction", party="client", metrics={**broken, "prior_agreement": 359 / 360})
    (said,) = conclusion(table([nearly], "dbcl"), [nearly], "dbcl", "model-extraction")
    assert "100 % (a constant: over 99 %)" in said


def test_different_numbers_of_candidates_are_given_as_a_span() -> None:
    told = [record(metrics={"auc": 0.8, "candidates": n}) for n in (150.0, 1200.0)]
    assert "Candidates: 150 to 1,200 a cell and seed" in baseline(told)


@pytest.mark.parametrize(
    ("value", "told"), [(0.55, "AUC 0.55 (0.45 to 0.65, not distinguishable from chance)"), (0.7, "0.80)")]
)
def test_the_verdict_says_where_chance_lies_in_the_interval(value: float, told: str) -> None:
    found = [record(defense="fedavg", metrics=auc(value))]
    assert f"{told} as the server." in conclusion(table(found, "fedavg"), found, "fedavg", "lira")[0]


def test_members_found_have_an_interval_and_a_rate_in_outsiders() -> None:
    rate = "tpr_at_1_percent_fpr"
    metrics = {**auc(0.8), "candidates": 288.0, rate: 0.07, f"{rate}_low": 0.03, f"{rate}_high": 0.124}
    one, two = cell([record(metrics=metrics)]), cell([record(seed, metrics=metrics) for seed in (0, 1)])
    assert one is not None
    assert two is not None
    assert lines(one)[2] == "finds 7 % (3 to 12 %) at 1 % FPR"
    half = 100 * 0.04 / 2**0.5, 100 * 0.054 / 2**0.5
    assert lines(two)[2] == f"finds 7 % ({7 - half[0]:.0f} to {7 + half[1]:.0f} %) at 1 % FPR", "as if both were one"
    for goal in ("membership", "training-membership"):
        few = "0.1 % FPR cannot be measured on 144 outsiders, of whom one is more."
        assert baseline([record(goal=goal, metrics=metrics)]).endswith(f" 1 % FPR is 1 of 144 outsiders; {few}")
        many = metrics | {"candidates": 4000.0, "tpr_at_0.1_percent_fpr": 0.01}
        assert baseline([record(goal=goal, metrics=many)]).endswith("; 0.1 % FPR is 2 of 2,000 outsiders.")
    nothing = baseline([record(metrics={"auc": 0.8, "candidates": 100.0})])
    assert nothing.endswith(" 1 % and 0.1 % FPR cannot be measured on 50 outsiders, of whom one is more.")
    assert "FPR" not in baseline([record(metrics={"cosine": 0.8, "candidates": 100.0})])


@pytest.mark.parametrize("goal", GOAL_NAMES)
@pytest.mark.parametrize("defense", ["fedavg", "dbcl"])
def test_a_verdict_without_a_result_says_so(goal: str, defense: str) -> None:
    told = [record(goal=goal, defense=defense, status="n/a", reason="for a reason", metrics={})]
    said = conclusion(table(told, defense), told, defense, "lira")
    assert said == ("lira gave no result; the reasons stand below the table.",)
    assert baseline(told) == ""


OUTCOMES: dict[str, dict[str, float]] = {
    "reconstruction": {"identified": 0.4, "identified_low": 0.12, "identified_high": 0.74, "recovered": 0.2},
    "membership": {"auc": 0.55, "advantage": 0.1, "auc_low": 0.45, "auc_high": 0.65},
    "training-membership": {"auc": 0.55, "advantage": 0.1, "auc_low": 0.45, "auc_high": 0.65},
    "client-membership": {"auc": 0.55, "advantage": 0.1, "auc_low": 0.45, "auc_high": 0.65},
    "source": {
        "source_accuracy": 0.5,
        "source_accuracy_low": 0.4,
        "source_accuracy_high": 0.6,
        "prior_source_accuracy": 0.25,
        "class_source_accuracy": 0.3,
    },
    "property": {"auc": 0.85, "advantage": 0.7, "auc_low": 0.75, "auc_high": 0.95},
    "labels": {"label_accuracy": 0.5, "label_accuracy_low": 0.25, "label_accuracy_high": 0.75},
    "extraction": MODEL,
    "inversion": {"top1": 0.3, "top1_low": 0.1, "top1_high": 0.65},
    "estimate": {"cosine": 0.25},
    "active-reconstruction": {"identified": 0.4, "identified_low": 0.12, "identified_high": 0.74, "recovered": 0.2},
    "curious-poisoning": {"identified": 0.4, "identified_low": 0.12, "identified_high": 0.74, "recovered": 0.2},
}


@pytest.mark.parametrize("accuracy", [0.9, 0.1])
@pytest.mark.parametrize("defense", ["fedavg", "dbcl"])
@pytest.mark.parametrize("goal", GOAL_NAMES)
def test_every_sentence_is_one(goal: str, defense: str, accuracy: float) -> None:
    """Each of one full stop, of at most fifty words, for models that have learned and for one at chance."""
    utility = {"clean_accuracy": accuracy, "fedavg_accuracy": 0.9, "chance": 0.1, "measure": "accuracy"}
    told = [
        record(goal=goal, defense=name, form=form, party=party, metrics=OUTCOMES[goal], utility=utility)
        for name in {defense, "fedavg"}
        for form in ("paper", "adaptive")
        for party in ("server", "client")
    ]
    verdict, *remarks = conclusion(table(told, defense), told, defense, "an-attack")
    for sentence in (verdict, *remarks):
        assert re.findall(r"[.;!?](?=\s|$)", sentence) == ["."]
        assert sentence.endswith(".")
        assert len(sentence.split()) <= 50
    if accuracy == 0.1:
        assert verdict.startswith(f"This is uninformative: the model that {defense} trains here")
        assert "an-attack" not in verdict
    else:
        assert verdict.startswith("Without a defense, an-" if defense == "fedavg" else "Against dbcl, an-attack in ")
        assert verdict.endswith(" without a defense.") == (defense == "dbcl")


@pytest.mark.parametrize(
    "options",
    [
        ("--attack=model-inversion", "--party=outsider", "--form=adaptive"),
        ("--attack=membership-inference", "--form=adaptive", "--set=attack.statistic=loss"),
        ("--attack=joint-membership", "--party=client", "--clients=1"),
    ],
)
def test_a_run_of_reasons_alone_ends_in_order(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ("--model=mlp", "--rounds=3", "--quiet", "--jobs=1", f"--out={tmp_path}")
    out = bench("run", "--defense=fedavg", *options, *short, capsys=capsys)
    assert "gave no result; the reasons stand below the table" in " ".join(out.split())
    assert "Records: " in out


def test_a_verdict_on_fedavg_tells_the_forms_apart() -> None:
    told = [record(form=form, defense="fedavg", metrics=auc(v)) for form, v in (("paper", 0.6), ("adaptive", 0.8))]
    verdict, remark = conclusion(table(told, "fedavg"), told, "fedavg", "lira")
    assert "in adaptive form tells who was in a batch with AUC 0.80 (0.70 to 0.90) as the server." in verdict
    assert "in paper form tells who was in a batch with AUC 0.60 (0.50 to 0.70, not disting" in remark
