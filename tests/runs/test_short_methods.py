"""Methods as functions: each is the method that its class would be, and is known in every way that a card is."""

from __future__ import annotations

import pickle
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.paths import ROOT
from helpers.plugin_files import forgotten
from helpers.plugins import installed
from torch import Tensor

import fedarena as fa
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.contracts.poisoning import Poisoning
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import scale
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.testing.federations import problem_for
from fedarena.testing.law import Method

pytestmark = pytest.mark.usefixtures("briefly_alone")


@fa.rule("half-way")
def half_way(x: Tensor, f: int) -> Tensor:
    """Between the first uploads and the last.

    More words.
    """
    return x.sort(0).values[f : len(x) - f].mean(0)


@fa.defense("quarters", "A quarter of every upload", version=3)
def quarters(upload: Tensor) -> Tensor:
    return 0.25 * upload


@fa.poisoning("mirror")
def mirror(own: Tensor, rng: torch.Generator) -> Tensor:
    return -2.0 * own


class HalfWay(Aggregator):
    def __call__(self, x, call):  # type: ignore[no-untyped-def]
        return Aggregate(x.sort(0).values[call.f : len(x) - call.f].mean(0), None)


class Quarters(FedAvg):
    def client(self, down, batch, memory, noise):  # type: ignore[no-untyped-def]
        up, memory = super().client(down, batch, memory, noise)
        return scale(0.25, up), memory


class Mirror(Poisoning):
    def craft(self, view, memory, rng):  # type: ignore[no-untyped-def]
        return scale(-2.0, view.own), memory


FEDERATION = {"model": "mlp", "clients": 6, "corrupted": 2, "rounds": 4, "batch_size": 8, "training.lr": 0.1}
FEDERATION["training.eval_every"] = 2


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ((half_way, "sign-flip", FEDERATION), (HalfWay, "sign-flip", FEDERATION)),
        ((quarters, "last-layer-label", {"rounds": 4}), (Quarters, "last-layer-label", {"rounds": 4})),
        (("fedavg", mirror, FEDERATION), ("fedavg", Mirror, FEDERATION)),
    ],
    ids=["rule", "defense", "poisoning"],
)
def test_a_function_measures_what_the_class_does(short: Any, long: Any) -> None:
    found = [
        [(r["status"], r["metrics"], r["utility"]) for r in fa.run(defense, attack, **options)]
        for defense, attack, options in (short, long)
    ]
    assert found[0] == found[1]


def test_the_name_of_the_function_holds_its_card() -> None:
    assert isinstance(half_way, Card)
    assert half_way.title == "Between the first uploads and the last."
    assert (quarters.title, quarters.version) == ("A quarter of every upload", 3)
    assert dict(mirror.usual)["corrupted"] == "4"


def test_noise_is_drawn_by_the_harness_and_is_zero_for_whoever_simulates() -> None:
    card = fa.defense("loud")(lambda upload, noise: upload + noise)
    problem = problem_for(Method(card, card.parse({})))
    made, batch = card.target(card.parse({}), problem.task), problem.batch(0, Rng(0))
    noise = made.draw(Rng(0))
    loud, quiet = (
        torch.cat([t.flatten() for t in made.client(problem.init, batch, {}, n)[0].values()]) for n in (noise, {})
    )
    torch.testing.assert_close(loud - quiet, noise["noise"], rtol=1e-4, atol=1e-5)
    assert 0.9 < float(noise["noise"].std()) < 1.1


def test_its_objects_can_be_pickled() -> None:
    problem = problem_for(Method(quarters, quarters.parse({})))
    copy = pickle.loads(pickle.dumps(quarters.target(quarters.parse({}), problem.task)))
    assert type(copy) is quarters.target
    assert copy.task.sizes == problem.task.sizes


firsts = fa.rule("first-of-all")(lambda x, f: x[0])
lasts = fa.rule("last-of-all")(lambda x, f: x[-1])


def test_two_functions_without_a_name_stay_apart_when_pickled() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    copies = [pickle.loads(pickle.dumps(card.load()(card.options()))) for card in (firsts, lasts)]
    assert [copy.function(x, 0).tolist() for copy in copies] == [[0.0, 1.0], [4.0, 5.0]]


def test_in_a_session_a_function_is_known_by_its_name_at_once() -> None:
    def quarter(x: Tensor, f: int) -> Tensor:
        return x.mean(0) / 4

    x = torch.eye(4)
    quarter.__module__ = "__main__"
    with forgotten():
        with pytest.raises(UserError, match="unknown aggregator 'quarter'"):
            fa.aggregate("nnm+quarter", x, 1)
        fa.rule("quarter")(quarter)
        assert torch.allclose(4 * fa.aggregate("nnm+quarter", x, 0), x.mean(0))
        card = fa.rule("krum")(quarter)
        with pytest.raises(UserError, match="aggregator 'krum' is claimed by fedarena: choose another name"):
            fa.aggregate(card, x, 1)


def test_a_function_of_the_wrong_parameters_is_refused() -> None:
    with pytest.raises(UserError, match="aggregator odd: its function takes 1 parameters, allowed: 2"):
        fa.rule("odd")(lambda x: x)
    with pytest.raises(UserError, match="defense odd: its function takes 3 parameters, allowed: 1 or 2"):
        fa.defense("odd")(lambda a, b, c: a)
    with pytest.raises(UserError, match=r"takes 2 parameters \(not all by position\), allowed: 2"):
        fa.rule("odd")(lambda x, *, f: x)
    with pytest.raises(UserError, match="aggregator odd is made of a partial, allowed: a function"):
        fa.rule("odd")(partial(max, 1))
    with pytest.raises(UserError, match=r"@fa.privacy_attack has no name, allowed: @fa.privacy_attack\(\"NAME\"\)"):
        fa.privacy_attack(max)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="attack odd: goal is 'inversion', allowed in a function: labels, "):
        fa.privacy_attack("odd", goal="inversion")


def test_an_installed_package_can_hold_functions(tmp_path: Path) -> None:
    with installed(tmp_path, {"aggregators": {"middling": "middling_rules:middle"}}, "middlings") as place:
        (place / "middling_rules.py").write_text(
            'import fedarena as fa\n@fa.rule("middling")\ndef middle(x, f):\n    return x.median(0).values\n'
        )
        found = fa.aggregate("middling", torch.tensor([[1.0], [2.0], [9.0]]), f=1)
    assert found.tolist() == [2.0]


@fa.rule("of-one-coordinate")
def of_one_coordinate(x: Tensor, f: int) -> Tensor:
    return x.mean(1)


@fa.rule("of-nothing")
def of_nothing(x: Tensor, f: int) -> None:
    """It returns nothing."""


class Bare(Aggregator):
    """A rule as a class that returns its vector bare."""

    def __call__(self, x, call):  # type: ignore[no-untyped-def]
        return x.mean(0)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            of_one_coordinate,
            r"rule of_one_coordinate \(test_short_methods.py:\d+\) returned a tensor \[4\], allowed: ",
        ),
        (of_nothing, r"rule of_nothing \(test_short_methods.py:\d+\) returned None, allowed: a tensor \[\d+\]"),
        (
            Bare,
            r"rule Bare.__call__ \(test_short_methods.py:\d+\) returned a tensor \[\d+\], allowed: an Aggregate",
        ),
    ],
)
def test_a_rule_that_returns_no_vector_is_named_with_its_place(rule: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        fa.run(rule, "sign-flip", model="mlp", clients=4, corrupted=1, rounds=2)


@fa.rule("in-double")
def in_double(x: Tensor, f: int) -> Tensor:
    return x.double().mean(0)


@fa.defense("double-upload")
def double_upload(upload: Tensor) -> Tensor:
    return upload.double() * 0.5


@pytest.mark.parametrize("defense", [in_double, double_upload])
def test_another_precision_is_taken(defense: Any) -> None:
    results = fa.run(defense, "sign-flip", model="mlp", clients=4, corrupted=1, rounds=2)
    assert {record["status"] for record in results} == {"ok"}


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (lambda x: x[0].to(torch.complex64), "a complex tensor"),
        (lambda x: x[0].to_sparse(), "a sparse tensor"),
        (lambda x: x[0].to("meta"), "a meta tensor"),
    ],
)
def test_a_vector_of_no_real_numbers_is_named(odd: Any, told: str) -> None:
    @fa.rule("odd")
    def rule(x: Tensor, f: int) -> Any:
        return odd(x)

    with pytest.raises(UserError, match=rf"rule .*rule \(test_short_methods.py:\d+\) returned {told} \[\d+\], allowed"):
        fa.run(rule, "sign-flip", model="mlp", clients=4, corrupted=1, rounds=2)


@pytest.mark.parametrize(
    ("goal", "answer", "told"),
    [
        (
            "labels",
            lambda seen, view: [0] * seen.images,
            r"a list, allowed: a tensor \[2\] of classes from 0 to 9",
        ),
        (
            "labels",
            lambda seen, view: torch.full((seen.images,), 99),
            r"a tensor \[2\], allowed: .* classes from 0 to 9",
        ),
        ("labels", lambda seen, view: torch.rand(seen.images), r"a tensor \[2\], allowed: .* classes from 0 to 9"),
        ("membership", lambda seen, view: torch.zeros(3), r"a tensor \[3\], allowed: a tensor \[\d+\] of scores"),
        ("estimate", lambda seen, view: torch.zeros(3), r"a tensor \[3\], allowed: a mapping from parameters"),
        ("reconstruction", lambda seen, view: torch.zeros(2, 1, 8, 8), r"allowed: a tuple of images \[2, 1, 8, 8\]"),
    ],
)
def test_an_answer_that_is_none_is_named_with_its_place(goal: Any, answer: Any, told: str) -> None:
    @fa.privacy_attack("odd-answer", goal=goal)
    def odd_answer(seen: Any, view: Any) -> Any:
        return answer(seen, view)

    results = fa.run("fedavg", odd_answer, model="mlp", rounds=5, batch_size=2, party="server", form="adaptive")
    (reason,) = {record["reason"] for record in results}
    assert re.search(rf"odd_answer \(test_short_methods.py:\d+\) returned .*{told}", reason), reason


def test_a_decorator_without_a_name_says_so() -> None:
    with pytest.raises(UserError, match=r"@fa.rule has no name, allowed: @fa.rule\(\"NAME\"\)"):
        fa.rule(in_double)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "function", "told"),
    [
        ("A b", lambda x, f: x[0], "aggregator A b: name is 'A b', allowed: lower-case words"),
        ("ab", max, "aggregator ab is made of"),
        ("ab", 3, "aggregator ab is made of an int, allowed: a function"),
    ],
)
def test_a_rule_that_cannot_be_made_is_refused(name: str, function: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        fa.rule(name, title="a title")(function)


@fa.defense("sends-nothing")
def sends_nothing(upload: Tensor) -> None:
    """It returns nothing."""


class UploadAlone(FedAvg):
    """A defense whose client returns no memory."""

    def client(self, down, batch, memory, noise):  # type: ignore[no-untyped-def]
        return super().client(down, batch, memory, noise)[0]


@pytest.mark.parametrize(
    ("defense", "told"),
    [
        (sends_nothing, r"sends_nothing \(test_short_methods.py:\d+\) returned None, allowed: a tensor \[\d+\]"),
        (
            UploadAlone,
            r"defense UploadAlone.client \(test_short_methods.py:\d+\) returned a dict, allowed: ",
        ),
    ],
)
def test_a_defense_that_returns_no_upload_is_named_with_its_place(defense: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        fa.run(defense, "sign-flip", model="mlp", clients=4, corrupted=1, rounds=2)


class CraftsNumbers(Poisoning):
    """An attack that sends no tensors."""

    def craft(self, view, memory, rng):  # type: ignore[no-untyped-def]
        return 3, memory


class CraftsNothing(Poisoning):
    """An attack that returns nothing."""

    def craft(self, view, memory, rng):  # type: ignore[no-untyped-def]
        return None


@pytest.mark.parametrize(
    ("attack", "returned"), [(CraftsNumbers, r"a tuple \(an int, a dict\)"), (CraftsNothing, "None")]
)
def test_an_attack_that_crafts_no_upload_fails_with_its_place(attack: type[Poisoning], returned: str) -> None:
    results = fa.run("median", attack, model="mlp", clients=4, corrupted=1, rounds=2)
    (reason,) = {record["reason"] for record in results if record["status"] == "failed"}
    told = rf"{attack.__name__}.craft \(test_short_methods.py:\d+\) returned {returned}, allowed: uploads"
    assert re.match(told, reason)


def test_an_upload_of_the_wrong_shape_is_named_with_its_place() -> None:
    @fa.poisoning("too-few")
    def too_few(own: Tensor, rng: torch.Generator) -> Tensor:
        return own[:, :3]

    results = fa.run("median", too_few, model="mlp", clients=4, corrupted=1, rounds=2)
    record = next(record for record in results if record["status"] == "failed")
    assert "too_few (test_short_methods.py:" in record["reason"]
    assert "returned a tensor [1, 3], allowed: a tensor [1, " in record["reason"]


def scaled(name: str, factor: float) -> Card:
    @fa.defense(name)
    def made(upload: Tensor) -> Tensor:
        """What is sent is scaled."""
        return factor * upload

    return made


def test_of_two_methods_of_one_name_each_is_what_was_handed_over() -> None:
    one, other = scaled("scaled", 0.0), scaled("scaled", 1.0)
    decorate = fa.rule("either")
    first, second = decorate(lambda x, f: 0 * x[0]), decorate(lambda x, f: x.mean(0))
    short: dict[str, Any] = {"rounds": 4, "clients": 4, "corrupted": 1, "model": "mlp", "jobs": 1}
    for still, moving in ((one, other), (first, second)):
        curves = [
            next(r["utility"]["clean_curve"] for r in fa.run(card, "sign-flip", **short) if r["defense"] != "fedavg")
            for card in (still, moving, still)
        ]
        assert curves[0] == curves[2] != curves[1]
        assert len({point[1] for point in curves[0]}) == 1, "the model never moves"


@fa.rule("noisy-mean")
def noisy_mean(x: Tensor, f: int) -> Tensor:
    return x.mean(0) + 0.1 * torch.randn(x.shape[1]) + 0.1 * float(np.random.rand()) + 0.1 * random.random()


@fa.privacy_attack("guesses")
def guesses(seen: Any, view: Any) -> Tensor:
    return torch.randint(view.n_classes, (seen.images,))


def test_draws_outside_a_run_follow_from_the_seed_too() -> None:
    before = torch.get_rng_state().tolist()
    one, again, other = (fa.aggregate(noisy_mean, np.eye(4), f=0, seed=seed) for seed in (0, 0, 1))
    assert one.tolist() == again.tolist() != other.tolist()
    assert torch.get_rng_state().tolist() == before


def test_a_function_that_keeps_hidden_state_has_no_result() -> None:
    own = np.random.default_rng(0)

    @fa.rule("own-generator")
    def rule(x: Tensor, f: int) -> Tensor:
        return x.mean(0) + float(own.random())

    made = fa.run(rule, "sign-flip", rounds=12, clients=4, corrupted=1, model="mlp", jobs=1)
    told = {r["reason"] for r in made if r["status"] == "failed"}
    assert {r["status"] for r in made if r["defense"] == "own-generator"} == {"failed"}
    assert all("does not follow from what it was given" in reason for reason in told)


def test_a_client_that_keeps_hidden_state_is_refused() -> None:
    own = np.random.default_rng(0)

    @fa.defense("drawing-client")
    def client(upload: Tensor) -> Tensor:
        return upload * (1 + float(own.random()))

    with pytest.raises(
        UserError,
        match=r"^defense \S+\.client \(test_short_methods\.py:\d+\) makes another upload of the same inputs: ",
    ):
        fa.run(client, "sign-flip", rounds=2, clients=4, corrupted=1, model="mlp", jobs=1)


def test_a_rule_of_a_file_may_draw_from_a_global_generator(tmp_path: Path) -> None:
    path = tmp_path / "noisy.py"
    path.write_text(
        "import fedarena as fa\nimport torch\n\n@fa.rule('noisy')\ndef noisy(x, f):\n"
        "    return x.mean(0) + 0.1 * torch.randn(x.shape[1])\n"
    )
    short: dict[str, Any] = {"rounds": 12, "clients": 4, "corrupted": 1, "model": "mlp", "plugin": path}
    one, two = (fa.run("noisy", "sign-flip", **short, jobs=jobs) for jobs in (1, 2))
    assert {r["status"] for r in one} == {"ok"}
    assert [r["metrics"] for r in one] == [r["metrics"] for r in two]


def test_draws_from_global_generators_follow_from_the_seed() -> None:
    """A function has no stream of its own to draw from."""
    short: dict[str, Any] = {"rounds": 4, "clients": 4, "corrupted": 1, "model": "mlp", "jobs": 1}
    before = random.getstate(), torch.get_rng_state().tolist()
    results = [
        [r["metrics"] for seed in (0, 1) for r in fa.run(*pairing, seeds=[seed], **more)]
        for pairing, more in ((("fedavg", guesses), {"model": "mlp", "jobs": 1}), ((noisy_mean, "sign-flip"), short))
        for _ in range(2)
    ]
    assert results[0] == results[1]
    assert results[2] == results[3]
    assert len({str(metrics) for metrics in results[2]}) > 2, "another seed draws other numbers"
    assert before == (random.getstate(), torch.get_rng_state().tolist())


def test_several_files_are_given_as_a_list() -> None:
    files = [str(ROOT / "examples" / f"short_{kind}.py") for kind in ("rule", "poisoning")]
    results = fa.run("short-middle", "short-backwards", plugin=files, rounds=2, clients=4, corrupted=1, jobs=1)
    assert {record["status"] for record in results} == {"ok"}
