"""Attacks where labels are numbers, inputs are rows of a table, or the model has one output for all classes."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.poisoning import left, make
from torch import Tensor

from fedarena.cli import main
from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.candidates import draw_questions
from fedarena.problem.loss import WORST, Criterion
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.runs.engine import run_groups

TABLE = ("diabetes", "regression")
GRADES = ("digits", "regression")
SQUARES = ("digits", "mse")
QUICK = {"victims": "2", "window": "3", "iterations": "600"}


def spec(data: tuple[str, str] = TABLE, corrupted: int = 0, **schedule: Any) -> ProblemSpec:
    """A smooth network near its start, as DLG needs it, or for poisoning one that learns."""
    dataset, loss = data
    if corrupted:
        model = registry.find("model", "mlp").parse({"widths": "16"})
    else:
        model = registry.find("model", "mlp").parse({"widths": "40", "activation": "sigmoid", "init": "uniform-half"})
    times = Schedule(**{"rounds": 6, "batch_size": 1, "lr": 1e-3, "loss": loss, **schedule})
    return ProblemSpec(
        dataset,
        model="mlp",
        partition="iid",
        clients=5 if corrupted else 2,
        model_options=model,
        schedule=times,
        corrupted=corrupted,
    )


def read(attack: str, data: tuple[str, str] = TABLE, party: str = "server", **options: str) -> dict[str, Any]:
    """The record of an undefended run."""
    threats = (Threat(party, "adaptive"),)  # type: ignore[arg-type]
    made = compose.parse_attack(attack, options)
    (record,) = run_groups(
        [GroupSpec(spec(data), defense=MethodSpec("fedavg"), attack=made, threats=threats, seed=0)], 1
    )[0].records
    canonical(record)
    return record


# -- reconstruction ------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", ["optimized", "given"])
def test_rows_and_their_numbers_come_back(labels: str) -> None:
    made = read("dlg", labels=labels, prior="none", **QUICK)
    assert made["status"] == "ok", made["reason"]
    m = made["metrics"]
    assert m["recovered"] == 1.0
    assert m["psnr"] > 40
    assert m["label_error"] < (1e-9 if labels == "given" else 0.01) < 0.05 < m["prior_label_error"]
    assert "ssim" not in m
    assert "label_accuracy" not in m
    assert made["scores"] == {"leak": 1.0, "privacy": 0.0}


def test_labels_that_are_numbers_are_not_inferred_class_by_class() -> None:
    for data in (TABLE, GRADES):
        made = read("dlg", data, labels="inferred", **QUICK)
        assert made["status"] == "n/a"
        assert "this model has one output" in made["reason"]


def test_of_one_output_for_classes_the_nearest_grade_is_named() -> None:
    made = read("dlg", GRADES, **QUICK)
    assert made["metrics"]["label_accuracy"] == made["metrics"]["recovered"] == 1.0
    assert "label_error" not in made["metrics"]


def test_squared_errors_to_classes_change_nothing() -> None:
    for labels in ("optimized", "inferred"):
        made = read("dlg", SQUARES, labels=labels, **QUICK)
        assert made["metrics"]["label_accuracy"] == made["metrics"]["recovered"] == 1.0


# -- labels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "reason"), [(TABLE, "labels are numbers"), (GRADES, "no output for each class")])
def test_classes_are_not_read_where_there_is_no_output_for_each(data: tuple[str, str], reason: str) -> None:
    made = read("last-layer-label", data, rounds="3")
    assert made["status"] == "n/a"
    assert reason in made["reason"]


# -- membership ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["joint-membership", "marginal-membership"])
def test_members_are_told_by_rows_and_numbers(attack: str) -> None:
    made = read(attack, rounds="5")
    assert made["status"] == "ok", made["reason"]
    assert made["metrics"]["candidates"] == 10
    assert made["metrics"]["auc"] > 0.7


def test_outsiders_are_any_held_out_rows() -> None:
    problem = build(spec(), 0)
    x, y = problem.inputs(problem.shards[0][:4]), problem.y[problem.shards[0][:4]]
    everyone = torch.arange(len(problem.y_test))
    (question,) = draw_questions(problem, {0: (x, y)}, everyone, [((0,), (x, y))], Rng(0))
    assert len(question.members) == 8
    assert question.candidates.y.dtype == torch.float32
    inside, outside = question.candidates.x[question.members], question.candidates.x[~question.members]
    assert rows_in(inside, x)
    assert rows_in(outside, problem.x_test)
    assert not rows_in(outside, problem.x)


def rows_in(some: Tensor, pool: Tensor) -> bool:
    return all(bool((pool == row).all(1).any()) for row in some)


# -- the model -----------------------------------------------------------------------------------------


def test_a_model_of_numbers_is_taken() -> None:
    made = read("model-extraction", party="client", rounds="2")
    assert made["metrics"]["agreement"] == 1.0
    assert made["metrics"]["prior_agreement"] == 0.0
    assert made["scores"]["leak"] == 1.0


# -- poisoning -----------------------------------------------------------------------------------------


@cache
def poisoned_problem() -> Problem:
    return build(spec(corrupted=1, lr=0.05, batch_size=8), 0)


def knowledge() -> AttackerKnowledge:
    problem = poisoned_problem()
    return knowledge_of(problem, FedAvg(NoOptions(), problem.task), "own")


@pytest.mark.parametrize(
    ("attack", "options", "said"),
    [
        ("label-flip", {}, "attack label-flip: the data set's labels are numbers"),
        ("pixel-trigger", {}, "attack pixel-trigger: the data set's labels are numbers"),
        ("blended", {}, "attack blended: the data set's labels are numbers"),
        ("a3fl", {}, "attack a3fl: the data set's labels are numbers"),
        ("dba", {}, "attack dba: the data set's labels are numbers"),
        ("edge-case", {}, "attack edge-case: the data set's labels are numbers"),
        ("bank", {"strike": "labels"}, "attack bank: option 'strike' is labels, but the data set's labels are numbers"),
        ("bank", {"strike": "sideways"}, "attack bank: option 'strike' is sideways"),
        ("steer", {"target": "flip"}, "attack steer: option 'target' is flip"),
    ],
)
def test_attacks_on_classes_refuse_numbers(attack: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        make(attack, knowledge(), **options)
    assert "allowed: a data set with classes" in str(error.value)


def test_what_needs_no_classes_is_allowed() -> None:
    make("bank", knowledge(), strike="ascent")
    make("steer", knowledge(), target="ascent")


def harmed(attack: MethodSpec, **schedule: Any) -> Record:
    problem = spec(corrupted=1, **{"rounds": 60, "lr": 0.05, "batch_size": 8, "eval_every": 10, **schedule})
    groups = [GroupSpec(problem, defense=MethodSpec("fedavg"), attack=None, threats=(), seed=0, probe=attack)]
    groups.append(
        GroupSpec(
            problem,
            defense=MethodSpec("fedavg"),
            attack=attack,
            threats=(Threat("client", "paper", knows="own"),),
            seed=0,
        )
    )
    record = run_groups(groups, 1)[-1].records[0]
    canonical(record)
    return record


def test_poisoning_is_judged_by_r_squared() -> None:
    weak = harmed(compose.parse_attack("sign-flip", {"scale": "1"}))
    strong = harmed(compose.parse_attack("sign-flip", {"scale": "3.5"}))
    assert weak["utility"]["measure"] == "R2"
    assert weak["utility"]["chance"] == 0.0
    assert weak["utility"]["clean_accuracy"] > weak["metrics"]["accuracy"] > strong["metrics"]["accuracy"]
    assert 1 > left(weak) > left(strong) >= 0
    for made in (weak, strong):
        clean, under = made["utility"]["clean_accuracy"], made["metrics"]["accuracy"]
        assert made["metrics"]["accuracy_drop"] == pytest.approx(clean - under)


def test_a_model_driven_out_of_the_numbers_is_a_result() -> None:
    made = harmed(compose.parse_attack("sign-flip", {"scale": "1e6"}))
    assert "not finite" in made["reason"]
    assert made["metrics"]["accuracy"] == WORST
    assert left(made) == 0.0


def test_an_honest_run_that_is_worse_than_guessing_is_judged_too() -> None:
    made = harmed(compose.parse_attack("sign-flip"), rounds=3, lr=1e-4, eval_every=1)
    assert made["utility"]["clean_accuracy"] < 0
    assert made["scores"] == {}


def test_predictions_that_are_not_finite_have_the_worst_r_squared() -> None:
    criterion, truth = Criterion("regression", 0), torch.tensor([0.0, 1.0])
    for bad in (math.nan, math.inf, 1e10):
        assert criterion.quality(torch.tensor([[0.0], [bad]]), truth) == WORST
    assert criterion.quality(truth[:, None], truth) == 1.0
    assert criterion.quality(torch.full((2, 1), 0.5), truth) == 0.0


def test_a_server_that_needs_samples_of_classes_refuses_numbers() -> None:
    held = compose.auxiliary(compose.parse_defense("two-stage"))
    with pytest.raises(UserError, match="samples a class, but the labels of diabetes are numbers"):
        build(spec(), 0, auxiliary=held)


# -- what is printed -----------------------------------------------------------------------------------

SHORT = ("--dataset=diabetes", "--model=mlp", "--set=model.widths=32", "--set=training.loss=regression", "--quiet")


def bench(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    code = main([*args, *SHORT, "--jobs=1"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return " ".join(out.split())


def test_reconstructed_rows_are_printed_and_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = (f"--out={tmp_path}", "--rounds=4", "--set=attack.victims=1", "--set=attack.iterations=20")
    out = bench("run", "--defense=fedavg", "--attack=dlg", *more, capsys=capsys)
    for said in (
        "labels off by",
        "the mean training row has PSNR",
        "the median training label is off by 0.1",
        "Rows of a table are not drawn.",
        " form identifies ",
        " of the rows as ",
        "fedavg: R² ",
    ):
        assert said in out
    assert "SSIM" not in out
    assert "accuracy" not in out
    assert not list(tmp_path.glob("*.png"))


def test_poisoned_regressions_are_printed_in_r_squared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = (f"--out={tmp_path}", "--rounds=60", "--clients=5", "--corrupted=1", "--batch-size=8")
    tuned = ("--set=training.lr=0.05", "--set=training.eval_every=20", "--set=attack.scale=3")
    out = bench("run", "--defense=median", "--attack=sign-flip", *more, *tuned, capsys=capsys)
    assert "With sign-flip, corrupted clients that know only their own data take median from 0." in out
    assert " and FedAvg from 0." in out
    assert "accuracy" not in out
    records = [json.loads(path.read_text()) for path in (tmp_path / "records").glob("*.json")]
    assert {r["utility"]["measure"] for r in records} == {"R2"}
