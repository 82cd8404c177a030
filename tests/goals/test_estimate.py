"""Estimates of gradients: the judge on known answers, the control, and the goal from training to record and picture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from helpers.tables import cell
from torch.func import grad

from fedarena import goals
from fedarena.cli import main
from fedarena.cli.output.pairing import drawn
from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.inference import GradientEstimate
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.files import canonical
from fedarena.core.rng import Rng
from fedarena.core.tensors import row, scale
from fedarena.core.threat import FORMS, PARTIES, NotApplicable, Threat
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec, threats
from fedarena.goals import find
from fedarena.goals.challenge import Challenge
from fedarena.goals.estimate import NOTHING, Estimates, Truths, control
from fedarena.goals.estimate_figure import estimate_figure
from fedarena.goals.metrics.reconstruction import estimate_metrics
from fedarena.models.scaling.positive_scaling import canonical as canonical_form
from fedarena.models.scaling.positive_scaling import plan
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.engine import run_groups

GOAL = find("estimate")


def groups(defense: str = "fedavg", seed: int = 0, **attack: str) -> list[GroupSpec]:
    """A run, beside FedAvg's."""
    model = registry.find("model", "mlp").parse({"widths": "24"})
    loss = dict(registry.find("defense", defense).usual).get("loss", "cross-entropy")
    problem = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=2,
        model_options=model,
        schedule=Schedule(rounds=12, batch_size=16, lr=0.05, loss=loss),
    )
    made = compose.parse_attack("gradient-estimate", {"rounds": "6", **attack})
    names = dict.fromkeys((defense, "fedavg"))
    return [
        GroupSpec(problem, defense=compose.parse_defense(n), attack=made, threats=threats(PARTIES, FORMS), seed=seed)
        for n in names
    ]


def records(defense: str = "fedavg", seed: int = 0, **attack: str) -> list[dict[str, Any]]:
    return run_groups(groups(defense, seed, **attack), 1)[0].records


def by_cell(found: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(r["party"], r["form"], r["reading"]): r for r in found}


@pytest.fixture(scope="module")
def sketched() -> list[dict[str, Any]]:
    return records("dbcl")


# -- the judge -----------------------------------------------------------------------------------------


def challenge(*truths: list[float]) -> Challenge:
    values = tuple({"w": torch.tensor(t)} for t in truths)
    return Challenge("upload", None, Truths(tuple(range(3, 3 + len(truths))), values, (NOTHING,) * len(truths)))


def estimates(*values: list[float]) -> list[GradientEstimate]:
    return [GradientEstimate({"w": torch.tensor(v)}) for v in values]


def test_medians_over_rounds_and_the_rounds_themselves() -> None:
    asked = challenge([1.0, 0.0], [0.0, 2.0], [3.0, 4.0])
    answer = estimates([2.0, 0.0], [2.0, 0.0], [3.0, 4.0])  # twice too long, at a right angle, exact
    assert GOAL.judge(answer, asked) == pytest.approx({"cosine": 1.0, "relative_l2": 1.0})
    kept = GOAL.series(answer, asked)
    assert kept["cosine"] == [[3, pytest.approx(1.0)], [4, 0.0], [5, pytest.approx(1.0)]]
    assert [value for _, value in kept["relative_l2"]] == pytest.approx([1.0, 2**0.5, 0.0])
    assert kept["control_cosine"] == [[3, 0.0], [4, 0.0], [5, 0.0]]


def test_an_answer_that_is_not_one_estimate_a_round_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="1 estimates for 2 observations"):
        GOAL.judge(estimates([1.0]), challenge([1.0], [1.0]))
    with pytest.raises(ValueError, match="the estimate names"):
        GOAL.judge([GradientEstimate({"v": torch.ones(1)})], challenge([1.0]))


def test_leak_is_what_the_control_leaves_open() -> None:
    told = {"cosine": 0.7, "control_cosine": 0.4}
    assert goals.find("estimate").privacy(told) == pytest.approx({"leak": 0.5, "privacy": 0.5})
    assert goals.find("estimate").privacy({**told, "cosine": 0.3})["leak"] == 0.0
    assert goals.find("estimate").privacy({"cosine": 1.0, "control_cosine": 1.0})["leak"] == 0.0


# -- the control ---------------------------------------------------------------------------------------


def finished(defense: str) -> FinishedRun:
    spec = groups(defense)[0]
    problem = build(spec.problem, 0)
    protocol = compose.make_defense(spec.defense, problem.task)
    run = federation.run(protocol, problem, Rng(0).child("federation"), watch=range(3))
    return FinishedRun(spec, problem, protocol, run)


def observed(made: FinishedRun, threat: Threat) -> Any:
    found = made.defense.readings(threat, cut(made.run.rounds, threat), (1,))
    assert not isinstance(found, NotApplicable), found.reason
    return found[0].observations[0]


def test_the_control_of_a_gradient_is_the_clients_own() -> None:
    made, threat = finished("fedavg"), Threat("client", "adaptive")
    seen = observed(made, threat)
    r, task = made.round(1), made.problem.task
    mine, theirs = (grad(task.loss)(r.params, *batch.images()) for batch in r.batches)
    found = control(made, threat, seen, made.estimated(seen))
    assert found == pytest.approx(estimate_metrics(mine, theirs))
    assert 0 < found["cosine"] < 1


def test_the_control_of_an_update_is_the_step_of_the_own_upload_alone() -> None:
    made, threat = finished("dbcl"), Threat("client", "adaptive")
    assert isinstance(made.defense, DBCL)
    seen, r = observed(made, threat), made.round(1)
    plain = made.defense.wire.expand(row(r.ups, 0), made.defense.wire.open(r.down)[1])
    mine = {name: scale(made.defense.step_size, plain)[name] for name in made.defense.wire.shapes}
    truth = made.estimated(seen)
    assert control(made, threat, seen, truth) == pytest.approx(estimate_metrics(mine, truth), rel=1e-3)


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_who_has_no_upload_guesses_nothing(party: Any) -> None:
    made, threat = finished("fedavg"), Threat(party, "adaptive")
    seen = observed(made, threat)
    assert control(made, threat, seen, made.estimated(seen)) == {"cosine": 0.0, "relative_l2": 1.0}


def test_the_truth_is_taken_in_the_form_that_the_estimate_is_of() -> None:
    """∂L/∂C at the canonical form C of W, which predicts as W does; the plain gradient is another vector."""
    made, threat = finished("pbpfl"), Threat("eavesdropper", "adaptive")
    seen, r, task = observed(made, threat), made.round(1), made.problem.task
    form = canonical_form(plan(task.model, task.input_shape), r.params)
    (at,) = (r.participants.index(c) for c in seen.clients)
    wanted = grad(task.loss)(form, *r.batches[at].images())
    assert estimate_metrics(made.estimated(seen), wanted)["relative_l2"] < 1e-4
    plain = made.estimated(replace(seen, estimate_of=GRADIENT))
    assert estimate_metrics(plain, wanted)["relative_l2"] > 0.1


# -- from training to record ---------------------------------------------------------------------------


def test_every_party_and_form_is_judged(sketched: list[dict[str, Any]]) -> None:
    assert {(r["party"], r["form"]) for r in sketched} == {(p, f) for p in PARTIES for f in FORMS}
    for r in sketched:
        assert r["status"] == "ok", r["reason"]
        assert r["metrics"]["estimates"] == 6
        for name in ("cosine", "relative_l2", "control_cosine", "control_relative_l2"):
            assert [t for t, _ in r["series"][name]] == [0, 1, 3, 5, 7, 9]
            assert r["metrics"][name] == pytest.approx(median(value for _, value in r["series"][name]))
        assert (r["metrics"]["control_cosine"] > 0) == (r["party"] == "client")
        assert r["scores"] == goals.find("estimate").privacy(r["metrics"])


def test_estimates_of_the_hidden_parameters_alone_say_so(sketched: list[dict[str, Any]]) -> None:
    hidden, all_of_them = 24 * 64, 24 * 64 + 24 + 240 + 10
    assert {r["metrics"]["share"] for r in sketched} == {hidden / all_of_them}
    (told, *_) = [c for r in sketched if (c := cell([r])) is not None]
    assert "over 85 % of the parameters" in GOAL.text.lines(told)
    assert "the others cross the wire in clear" in " ".join(GOAL.text.baseline(sketched))


def test_twice_the_same_records(sketched: list[dict[str, Any]]) -> None:
    def stable(found: list[dict[str, Any]]) -> list[str]:
        return [canonical({k: v for k, v in r.items() if k not in ("environment", "cost")}) for r in found]

    assert stable(records("dbcl")) == stable(sketched)


def without(found: Any) -> Any:
    return [Reading(r.name, tuple(replace(o, estimate=None) for o in r.observations)) for r in found]


def test_readings_without_an_estimate_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    inherited = FedAvg.readings
    extra = Reading("matched", ())

    def readings(self: FedAvg, *args: Any) -> Any:
        found = inherited(self, *args)
        assert not isinstance(found, NotApplicable)
        return [replace(extra, observations=without(found)[0].observations), *found]

    monkeypatch.setattr(FedAvg, "readings", readings)
    assert {r["reading"] for r in records()} == {"upload", "difference"}
    monkeypatch.setattr(FedAvg, "readings", lambda self, *args: without(inherited(self, *args)))
    for r in records():
        assert r["status"] == "n/a"
        assert r["reason"] == "what was seen is matched as it is: the gradient is not estimated from it"
        assert not r["series"]


# -- what a person sees --------------------------------------------------------------------------------


def bench(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    code = main(list(args))
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def test_a_run_prints_the_medians_and_draws_the_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ("--rounds=12", "--set=model.widths=24", "--quiet", "--jobs=1", f"--out={tmp_path}")
    out = bench("run", "--defense=dbcl", "--attack=gradient-estimate", *short, capsys=capsys)
    told = " ".join(out.split())
    for said in (
        "cosine 1.00",
        "own upload: cosine 0.",
        "by smoother",
        "A guess of zero has cosine 0 and relative L2 1",
        "gradient-estimate in adaptive form estimates the gradient with cosine",
        ", and cosine 1.00 without a defense.",
    ):
        assert said in told
    assert "estimate: cosine" not in told  # the same number twice
    picture = tmp_path / "dbcl-gradient-estimate-digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = [json.loads(p.read_text()) for p in (tmp_path / "records").iterdir()]
    assert all(r["series"]["cosine"] for r in saved)


def test_without_estimates_nothing_is_drawn(sketched: list[dict[str, Any]]) -> None:
    empty = [{**r, "series": {}} for r in sketched]
    assert estimate_figure(empty, "dbcl", "x", GOAL.text) is None
    drawn_one = estimate_figure(sketched, "dbcl", "x", GOAL.text)
    assert drawn_one is not None
    assert drawn(drawn_one).axes


def test_explain_says_what_is_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("explain", "dbcl", "gradient-estimate", "--set=model.widths=24", "--json")
    told = json.loads(bench(*asked, capsys=capsys))
    given = {(p["party"], p["form"]): p["given"] for p in told["parties"]}
    assert given["server", "paper"].endswith("estimates: 1,536 numbers of the gradient")
    assert given["client", "adaptive"].endswith("estimates: 1,536 numbers of the update")


def test_the_goal_has_no_state() -> None:
    assert isinstance(GOAL, Estimates)
    assert not vars(GOAL)
