"""Inversion from training to record: who gets what, how pictures are judged, and what is not applicable."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import pytest
import torch
from helpers.tables import conclusion, table
from joblib.externals.loky import get_reusable_executor
from torch import Tensor

from fedarena import goals
from fedarena.attacks.inversion.model_inversion import ModelInversion
from fedarena.contracts.inference import Portraits
from fedarena.contracts.view import View
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.threat import EVERYONE, FORMS, Form, Party
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, threats
from fedarena.goals.metrics import image_classifier
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import executors
from fedarena.runs.engine import run_groups


def problem_spec(dataset: str = "digits", **changes: Any) -> ProblemSpec:
    model = registry.find("model", "mlp").parse({"widths": "32"})
    schedule = Schedule(**{"rounds": 150, "batch_size": 32, "lr": 0.3, **changes})
    return ProblemSpec(dataset, model="mlp", partition="iid", clients=2, model_options=model, schedule=schedule)


def groups(
    defense: str = "fedavg", parties: tuple[Party, ...] = ("client",), forms: tuple[Form, ...] = ("paper",),
    attack: dict[str, str] | None = None, **changes: Any,
) -> list[GroupSpec]:  # fmt: skip
    made = compose.parse_attack("model-inversion", attack or {"iterations": "60"})
    names = dict.fromkeys((defense, "fedavg"))
    spec = problem_spec(**changes)
    return [
        GroupSpec(spec, defense=compose.parse_defense(n), attack=made, threats=threats(parties, forms), seed=0)
        for n in names
    ]


def records(*args: Any, **changes: Any) -> list[dict[str, Any]]:
    return run_groups(groups(*args, **changes), 1)[0].records


pytestmark = pytest.mark.usefixtures("quick_judge")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return build(problem_spec(), 0)


@pytest.mark.parametrize("defense", ["fedavg", "dbcl", "dp-sgd"])
def test_everyone_has_a_model_in_the_published_form_and_none_to_adapt_to(defense: str) -> None:
    made = records(defense, EVERYONE, FORMS, {"iterations": "10"}, rounds=20)
    assert {(r["party"], r["form"]) for r in made} == {(p, f) for p in EVERYONE for f in FORMS}
    for r in made:
        if r["form"] == "adaptive":
            assert (r["status"], r["metrics"]) == ("n/a", {})
            assert "attacked as it is" in r["reason"]
            continue
        assert r["status"] == "ok", r["reason"]
        readings = {"server": "deployed", "outsider": "queries"}
        assert r["reading"] == readings.get(r["party"], "release")
        assert (r["metrics"]["queries"] > 0) == (r["party"] == "outsider")
        assert r["scores"] == goals.find("inversion").privacy(r["metrics"])
        assert r["metrics"]["prior_top1"] == pytest.approx(0.1)
        assert r["metrics"]["classes"] == 10


def test_a_trained_model_shows_its_classes_and_an_untrained_one_does_not() -> None:
    (trained,) = records()
    (blank,) = records(rounds=1, lr=1e-6)
    assert trained["metrics"]["top1"] >= 0.6
    assert trained["metrics"]["confidence"] > 0.98
    assert trained["metrics"]["ssim"] > trained["metrics"]["prior_grey_ssim"] + 0.2
    assert blank["metrics"]["top1"] <= 0.3
    assert trained["scores"]["leak"] > blank["scores"]["leak"] + 0.3


def test_a_masked_release_gives_what_a_plain_model_of_that_loss_gives() -> None:
    """PBPFL's masks scale units; the function stays, so that inversion is none the worse for them."""
    masked, plain = (run_groups(groups(d, loss="mse"), 1)[0] for d in ("pbpfl", "fedavg"))
    a, b = masked.galleries[0].guesses, plain.galleries[0].guesses
    assert float((a - b).abs().mean()) < 0.02
    m, p = masked.records[0]["metrics"], plain.records[0]["metrics"]
    assert abs(m["top1"] - p["top1"]) <= 0.1
    assert m["ssim"] == pytest.approx(p["ssim"], abs=0.02)


def call_with_few_lessons(lessons: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """As a worker calls, with a judge that is as quick as this process's."""
    image_classifier.LESSONS = lessons
    return function(*args)


def test_twice_and_with_two_workers_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_classifier, "LESSONS", image_classifier.LESSONS // 5)
    monkeypatch.setattr(image_classifier, "_trained", lru_cache(image_classifier._trained.__wrapped__))
    monkeypatch.setattr(executors, "_call", partial(call_with_few_lessons, image_classifier.LESSONS))

    def stable(jobs: int) -> list[str]:
        short = groups("dbcl", ("client", "outsider"), attack={"iterations": "10"}, rounds=20)
        made = run_groups(short, jobs)[0].records
        return [canonical({k: v for k, v in r.items() if k not in ("environment", "cost")}) for r in made]

    assert stable(1) == stable(2)
    get_reusable_executor().shutdown(kill_workers=True)


# -- the judge, on answers that are known --------------------------------------------------------------


def answered(images: Tensor, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    def run(self: ModelInversion, view: View, rng: Any, progress: Any) -> Portraits:
        return Portraits(images, torch.zeros(len(images), dtype=torch.int64), 0)

    monkeypatch.setattr(ModelInversion, "run", run)
    (record,) = records(rounds=2)
    return record


def by_class(problem: Problem, k: int) -> Tensor:
    return problem.x[problem.y == k].double() / problem.scale


def test_one_picture_for_all_is_worth_nothing(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    for image in (torch.full((1, 8, 8), 0.5), problem.x.double().mean(0) / problem.scale):
        record = answered(image.expand(10, 1, 8, 8), monkeypatch)
        assert record["metrics"]["top1"] == pytest.approx(0.1)
        assert record["metrics"]["top5"] == pytest.approx(0.5)
        assert record["scores"] == {"leak": 0.0, "privacy": 1.0}
    assert record["metrics"]["ssim"] == pytest.approx(record["metrics"]["prior_mean_ssim"])


def test_the_class_means_are_the_ceiling(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    m = answered(torch.stack([by_class(problem, k).mean(0) for k in range(10)]), monkeypatch)["metrics"]
    assert m["top1"] == m["ceiling_top1"] == 1.0
    assert m["ssim"] == pytest.approx(1.0)
    assert m["psnr"] == 100.0
    assert m["nearest_ssim"] < 1.0


def test_a_training_image_is_its_own_nearest(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    m = answered(torch.stack([by_class(problem, k)[7] for k in range(10)]), monkeypatch)["metrics"]
    assert m["nearest_ssim"] == pytest.approx(1.0)
    assert m["nearest_psnr"] == 100.0
    assert m["ssim"] < 0.95


def test_pictures_of_the_wrong_class_are_worth_less_than_nothing(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = answered(torch.stack([by_class(problem, (k + 1) % 10).mean(0) for k in range(10)]), monkeypatch)
    assert record["metrics"]["top1"] == 0.0
    assert record["scores"]["leak"] == 0.0


@pytest.mark.parametrize(
    ("shape", "said"),
    [((9, 1, 8, 8), "ValueError: portraits of shape"), ((10, 1, 8, 7), "returned a tensor [10, 1, 8, 7] as images")],
)
def test_an_answer_of_another_shape_is_a_failed_record(
    shape: tuple[int, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = answered(torch.zeros(shape), monkeypatch)
    assert record["status"] == "failed"
    assert said in record["reason"]


def test_pixels_that_are_no_numbers_are_grey(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(torch.full((10, 1, 8, 8), torch.nan), monkeypatch)["metrics"]["top1"] == pytest.approx(0.1)


# -- what cannot be ------------------------------------------------------------------------------------


def test_a_model_with_one_output_has_no_classes_to_show() -> None:
    (record,) = records(loss="regression", rounds=2, lr=0.01)
    assert record["status"] == "n/a"
    assert "one output" in record["reason"]


def test_rows_of_a_table_are_refused_before_anything_is_trained() -> None:
    table_of = build(problem_spec("breast-cancer", rounds=1), 0)
    attack = ModelInversion(registry.find("attack", "model-inversion").parse({}))
    with pytest.raises(UserError, match=r"'dataset' is breast-cancer, whose inputs have shape \(30,\), allowed"):
        goals.find("inversion").refuse(
            table_of, compose.make_defense(compose.parse_defense("fedavg"), table_of.task), attack
        )


# -- in words ------------------------------------------------------------------------------------------


def test_the_texts_name_what_was_recognised() -> None:
    made = [r for g in run_groups(groups("dbcl", ("server", "outsider"), FORMS), 1) for r in g.records]
    rows = table(made, "dbcl")
    plain = rows["outsider"]["no defense, paper form"]
    assert plain is not None
    assert plain.status == "ok"
    goal = goals.find("inversion")
    told = "\n".join(goal.text.lines(plain))
    for word in ("recognised", "among five", "class mean: SSIM", "nearest image: SSIM", "queries"):
        assert word in told
    assert "one picture for all classes is recognised in 10 %" in goal.text.baseline(made)[0]
    said = conclusion(rows, made, "dbcl", "model-inversion")
    assert any("model-inversion in paper form makes pictures of which " in sentence for sentence in said)


def test_a_table_without_a_result_has_no_baseline() -> None:
    made = records(loss="regression", rounds=2, lr=0.01)
    assert goals.find("inversion").text.baseline(made) == []
