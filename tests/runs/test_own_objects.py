"""Objects of a session as methods: a run with a class gives the records of the same method under its name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.broken_methods import Masks
from helpers.repeatable import repeatable
from torch import nn

import fedarena as fa
from fedarena.attacks.poisoning.alie import ALIE
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.contracts.defense import Direction
from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.poisoning import Poisoning
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.tensors import scale
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.defenses.aggregators.krum import Krum
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.secure.pairwise import PairwiseMasks
from fedarena.models.mlp import MLP
from fedarena.runs.own_objects import name_of

pytestmark = pytest.mark.usefixtures("briefly_alone")

OPTIONS = registry.find("model", "mlp").options
SHORT: dict[str, Any] = {"rounds": 4, "model": "mlp", "model.widths": 8}
POISONED = SHORT | {"clients": 8, "corrupted": 2, "batch_size": 8, "training.lr": 0.2, "training.eval_every": 1}


class MyMedian(Aggregator):
    """The median of every coordinate."""

    def __call__(self, x: Any, call: Any) -> Aggregate:
        return Aggregate(x.median(0).values, None)


class HalfStep(FedAvg):
    def direction(self, *given: Any) -> Any:
        made = super().direction(*given)
        return type(made)(scale(0.5, made.step), made.extra, made.verdict)


class MyFlip(Poisoning):
    def craft(self, view: Any, memory: Any, rng: Any) -> Any:
        return scale(-1.0, view.own), memory


class Blind(Inference):
    goal = "membership"

    def run(self, view: Any, rng: Any, progress: Any) -> Any:
        return [Scores(torch.zeros(len(o.candidates.y))) for o in view.observations]


def metrics(results: fa.Results) -> list[dict[str, float]]:
    return [record["metrics"] for record in repeatable(results)]


def test_a_secure_sum_is_a_class() -> None:
    found = fa.run(Masks, "last-layer-label", party="server", clients=4, **SHORT)
    assert found.defense == "masks"
    assert {r["defense"]: r["status"] for r in found} == {"masks": "ok", "fedavg": "ok"}


def test_a_rule_and_an_attack_are_classes() -> None:
    own = fa.run(MyMedian, MyFlip, **POISONED)
    assert (own.defense, own.attack) == ("my-median", "my-flip")
    assert {r["origins"]["my-median"] for r in own if r["defense"] == "my-median"} == {"this session"}
    assert not any("secret" in record for record in own)
    built_in = fa.run(MyMedian, "sign-flip", **POISONED, knows="own", jobs=1, **{"attack.scale": 1.0})
    left, right = (
        [r["metrics"]["accuracy"] for r in results if r["attacker_knowledge"] == "own"] for results in (own, built_in)
    )
    assert left == right


def test_a_protocol_is_a_class_and_acts() -> None:
    half, plain = (fa.run(one, "last-layer-label", party="server", **SHORT, jobs=1) for one in (HalfStep, "fedavg"))
    slow = next(record for record in half if record["defense"] == "half-step")
    assert slow["utility"]["clean_curve"] != plain[0]["utility"]["clean_curve"]
    beside = next(record for record in half if record["defense"] == "fedavg")
    assert beside["utility"]["clean_curve"] == plain[0]["utility"]["clean_curve"]


class Nothing(FedAvg):
    """It has a client step of its own, and says nothing of faster forms."""

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> Any:
        up, memory = super().client(down, batch, memory, noise)
        return scale(0.0, up), memory


def test_a_client_step_of_ones_own_is_what_runs() -> None:
    made = fa.run(Nothing, "last-layer-label", party="server", **SHORT, jobs=1)
    curves = {r["defense"]: r["utility"]["clean_curve"] for r in made}
    assert len({point[1] for point in curves["nothing"]}) == 1, "the model never moves"
    assert curves["nothing"] != curves["fedavg"]


class Mixin:
    """A client step that is put before a protocol."""

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> Any:
        return scale(0.0, down), memory


def test_a_client_step_of_a_mix_in_or_an_assignment_is_what_runs() -> None:
    class Mixed(Mixin, FedAvg):
        pass

    class Assigned(FedAvg):
        pass

    Assigned.client = Mixin.client  # type: ignore[assignment, method-assign]
    for given in (Mixed, Assigned):
        made = fa.run(given, "last-layer-label", party="server", **SHORT, jobs=1)
        curve = next(r["utility"]["clean_curve"] for r in made if r["defense"] != "fedavg")
        assert len({point[1] for point in curve}) == 1, "the model never moves"


class OwnMedian(FedAvg):
    """A server's step that asks no rule, and that needs every upload."""

    def direction(self, state: Any, sent: Any, ups: Any, cohort: Any, rng: Any) -> Any:
        return Direction({name: t.median(0).values for name, t in ups.items()})


class OwnCombine(FedAvg):
    def combine(self, *given: Any) -> Any:
        return OwnMedian.direction(self, *given)  # type: ignore[arg-type]


class Later(FedAvg):
    """Asks its rule from the second round on."""

    def direction(self, state: Any, *given: Any) -> Any:
        return self.combine(state, *given) if state.round else OwnMedian.direction(self, state, *given)  # type: ignore[arg-type]


class SumsToo(OwnMedian):
    sums = True


class Twice(FedAvg):
    """A client step that says nothing of a momentum."""

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> Any:
        up, memory = super().client(down, batch, memory, noise)
        return scale(2.0, up), memory


def test_what_a_protocol_says_of_its_methods_does_not_hold_for_others() -> None:
    fa.run(OwnMedian, "sign-flip", **POISONED, jobs=1)
    fa.run(OwnCombine, "sign-flip", **POISONED, jobs=1)
    for name in ("own-median", "own-combine"):
        with pytest.raises(fa.UserError, match=r"\(test_own_objects\.py:\d+\) never asks its rule Krum \(krum\.py"):
            fa.run(f"{name}+krum", "sign-flip", **POISONED, jobs=1)
        with pytest.raises(fa.UserError, match="shows the server a sum, but this protocol needs every upload"):
            fa.run(f"{name}+pairwise-masks", "sign-flip", **POISONED, jobs=1)
    fa.run(Later, "sign-flip", **POISONED, jobs=1)
    assert fa.run("later+krum", "sign-flip", **POISONED, jobs=1)
    with pytest.raises(fa.UserError, match="'client_optimizer' is momentum"):
        fa.run(Twice, "sign-flip", **POISONED, **{"training.client_optimizer": "momentum"}, jobs=1)
    fa.run(SumsToo, "sign-flip", **POISONED, jobs=1)
    assert fa.run("sums-too+pairwise-masks", "sign-flip", **POISONED, jobs=1)


class Doubled(PairwiseMasks):
    """A sum that is wrong, so that a run with another sum shows."""

    def __call__(self, vectors: torch.Tensor, rng: Any) -> Any:
        made = super().__call__(vectors, rng)
        return replace(made, total=0 * made.total)


def test_a_sum_of_ones_own_is_what_runs_in_every_round() -> None:
    made = fa.run(Doubled, "sign-flip", **POISONED, jobs=1)
    attacked = next(r for r in made if r["attack"] != "none" and "doubled" in r["defense"])
    assert len({point[1] for point in attacked["utility"]["clean_curve"]}) == 1
    assert attacked["metrics"]["accuracy_drop"] == 0, "no upload reaches the model"


def test_a_class_below_a_method_with_options_has_them() -> None:
    class Quieter(DPSGD):
        pass

    class Pushed(ALIE):
        pass

    def of_defense(defense: Any, attack: Any) -> list[dict[str, Any]]:
        given = {"defense.epsilon": 8.0, "attack.z": 2.0}
        made = fa.run(defense, attack, **POISONED, **given, jobs=1)
        assert {r["status"] for r in made} == {"ok"}
        return [r["options"] for r in made if r["defense"] != "fedavg"]

    assert of_defense(Quieter, Pushed) == of_defense("dp-sgd", "alie")
    assert (
        fa.aggregate(type("Mine", (Krum,), {}), np.eye(6), f=1).tolist()
        == fa.aggregate("krum", np.eye(6), f=1).tolist()
    )


def test_a_class_that_changed_under_its_name_is_the_new_one() -> None:
    first = name_of("attack", Blind)
    assert registry.find("attack", first).load() is Blind
    other = type("Blind", (Blind,), {})
    assert name_of("attack", other) == first
    assert registry.find("attack", first).load() is other


@pytest.mark.parametrize("option", ["defense", "attack", "model"])
def test_an_object_whose_class_has_a_name_in_use_gets_another_one(option: str) -> None:
    made: dict[str, Any] = {
        "defense": type("Krum", (MyMedian,), {}),
        "attack": type("SignFlip", (MyFlip,), {}),
        "model": type("MLP", (nn.Sequential,), {})(nn.Flatten(), nn.Linear(64, 10)),
    }
    used = {"defense": "krum", "attack": "sign-flip", "model": "mlp"}[option]
    for _ in range(2):
        assert name_of(option, made[option]) == f"own-{used}"
    kind: Kind = "aggregator" if option == "defense" else option
    assert registry.registries()[kind].entry(used).origin == "fedarena"


@pytest.mark.parametrize(("made", "name"), [("QSGD", "qsgd"), ("PairwiseMasks", "pairwise-masks")])
def test_a_rule_with_the_name_of_a_protocol_or_a_secure_sum_is_the_users(made: str, name: str) -> None:
    called = []

    class Rule(MyMedian):
        def __call__(self, x: Any, call: Any) -> Aggregate:
            called.append(name)
            return super().__call__(x, call)

    results = fa.run(type(made, (Rule,), {}), MyFlip, **POISONED)
    assert results.defense == f"own-{name}"
    assert called


@pytest.mark.parametrize(("kind", "name"), [("aggregator", "qsgd"), ("defense", "krum"), ("defense", "zero-sum")])
def test_a_given_name_of_a_method_that_stands_in_the_same_place_is_refused(kind: Kind, name: str) -> None:
    card = Card(name=name, kind=kind, title="x", target=MyMedian if kind == "aggregator" else HalfStep)
    with pytest.raises(fa.UserError, match=f"'{name}' is claimed by fedarena: choose another name"):
        fa.run(card, "sign-flip", **POISONED)


def test_a_later_object_takes_the_name_whatever_its_kind() -> None:
    for kind, target in (("aggregator", MyMedian), ("defense", HalfStep)):
        name_of("defense", Card(name="mine-of-two-kinds", kind=kind, title="x", target=target))
    assert [card.kind for card in registry.find_any("mine-of-two-kinds")] == ["defense"]


def test_models_of_a_session_can_be_trained_by_the_attacker() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    made = fa.run("fedavg", "membership-inference", model=model, rounds=3, party="client", form="paper", jobs=1)
    assert {record["status"] for record in made} == {"ok"}, [record["reason"] for record in made]


def test_another_model_of_the_same_class_has_records_of_its_own(tmp_path: Path) -> None:
    for width in (4, 8, 4):
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, 10))
        fa.run("fedavg", "last-layer-label", model=model, rounds=2, party="server", form="paper", out=tmp_path)
    assert len([r for r in fa.read_records(tmp_path) if r["attack"]]) == 2


def test_other_arrays_of_the_same_name_have_records_of_their_own(tmp_path: Path) -> None:
    x, y = rows()
    for shift in (0.0, 0.1, 0.0):
        parts: dict[str, Any] = {"x_train": x * 0.9 + shift, "y_train": y, "x_test": x[:9], "y_test": y[:9]}
        data = Dataset(name="mine", scale=1.0, n_classes=3, provenance=Provenance("a test"), **parts)
        fa.run("fedavg", "last-layer-label", dataset=data, **SHORT, party="server", form="paper", out=tmp_path)
    assert len([r for r in fa.read_records(tmp_path) if r["attack"]]) == 2


def test_a_name_without_latin_letters_is_no_obstacle() -> None:
    assert name_of("defense", type("模型", (MyMedian,), {})) == "unnamed"
    parts: dict[str, Any] = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y}
    data = Dataset(name="My Data", scale=1.0, n_classes=3, provenance=Provenance("a test"), **parts)
    with pytest.raises(fa.UserError, match="name is 'My Data', allowed"):
        name_of("dataset", data)


def test_a_blind_attack_on_members_is_at_chance() -> None:
    made = fa.run("fedavg", Blind, party="server", form="paper", **SHORT | {"batch_size": 4})
    assert {record["metrics"]["auc"] for record in made if record["metrics"]} == {0.5}


def test_arrays_and_a_module_are_a_problem() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    x = (np.eye(4)[y] * 0.8 + 0.1 * rng.random((200, 4))).astype(np.float32)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    problem: dict[str, Any] = {"dataset": (x, y), "model": model, "rounds": 200, "batch_size": 16, "training.lr": 0.5}
    made = fa.run("fedavg", "last-layer-label", party="server", **problem)
    (record,) = {r["key"]: r for r in made if r["form"] == "paper"}.values()
    assert record["problem"]["dataset"] == "arrays"
    assert record["problem"]["model"] == "sequential"
    assert record["problem"]["data"]["source"] == "arrays of this session"
    assert record["utility"]["clean_accuracy"] > 0.95


class Shifted(nn.Module):
    """A dense layer on inputs without their mean, which it keeps as it was given."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        self.dense = nn.Linear(64, 10)
        mean = torch.linspace(0, 1, 64)
        if kept == "buffer":
            self.register_buffer("mean", mean)
        else:
            self.mean = mean

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(x.flatten(1) - self.mean)


def test_what_a_function_uses_counts_when_it_runs(tmp_path: Path) -> None:
    """A cell of a notebook sets a global variable after the cell of the function."""
    session: dict[str, Any] = {"__name__": "__main__", "fa": fa}
    exec("@fa.rule('cell')\ndef cell(x, f):\n    return FACTOR * x.mean(0)", session)
    short: dict[str, Any] = {"rounds": 2, "model": "mlp", "clients": 4, "corrupted": 1, "jobs": 1, "out": tmp_path}
    for factor, by_name in ((1.0, False), (-1.0, False), (-1.0, True), (3.0, True)):
        session["FACTOR"] = factor
        fa.run("cell" if by_name else session["cell"], "sign-flip", **short)
    versions = {r["versions"]["defense+cell"] for r in fa.read_records(tmp_path) if r["defense"] == "cell"}
    assert len(versions) == 3


@pytest.mark.parametrize(
    ("init", "said"),
    [
        (lambda made: {name: t for name, t in made.items() if name != "out.bias"}, r"out\.bias is left out"),
        (lambda made: {name: t.double() for name, t in made.items()}, r"fc1\.weight is .*float64.* of float32"),
        (lambda made: {**made, "more": torch.zeros(1)}, "more is none of the module's"),
        (lambda made: None, r"fc1\.weight is left out"),
    ],
)
def test_initial_values_that_are_not_the_module_s_are_refused(init: Any, said: str) -> None:
    class Bad(MLP):
        def init(self, module: nn.Module, generator: torch.Generator) -> Any:
            return init(super().init(module, generator))

    with pytest.raises(fa.UserError, match=f"^option 'model' is bad, whose initial parameter {said}"):
        fa.run(
            "krum", "sign-flip", model=Card(name="bad", kind="model", title="bad", target=Bad, options=OPTIONS), jobs=1
        )


def test_initial_values_from_a_global_generator_follow_from_the_seed() -> None:
    class Drawing(MLP):
        def init(self, module: nn.Module, generator: torch.Generator) -> Any:
            return {name: 0.1 * torch.randn(p.shape) for name, p in module.named_parameters()}

    drawing = Card(name="drawing", kind="model", title="draws", target=Drawing, options=OPTIONS)
    given: dict[str, Any] = {"model": drawing, "clients": 5, "corrupted": 1, "rounds": 2, "jobs": 1}
    one, other = (metrics(fa.run("krum", "sign-flip", **given)) for _ in range(2))
    assert one == other


def test_a_norm_of_the_present_batch_is_trained() -> None:
    norm = nn.BatchNorm1d(8, affine=False, track_running_stats=False)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), norm, nn.Tanh(), nn.Linear(8, 10))
    made = fa.run("median", "sign-flip", model=model, clients=5, corrupted=1, rounds=3, batch_size=4, jobs=1)
    assert {r["status"] for r in made} == {"ok"}
    with pytest.raises(fa.UserError, match=r"\(Sequential\) fails on inputs \[1, 1, 8, 8\]: ValueError: Expected more"):
        fa.run("median", "sign-flip", model=model, clients=5, corrupted=1, rounds=3, batch_size=1, jobs=1)


def test_what_a_module_keeps_beside_its_parameters_is_used() -> None:
    def reached(model: Any) -> list[dict[str, float]]:
        return metrics(fa.run("krum", "sign-flip", model=model, clients=5, corrupted=1, rounds=3, jobs=1))

    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.dense(x.flatten(1) - torch.linspace(0, 1, 64))

    expected = reached(Written())
    for kept in ("buffer", "attribute"):
        assert reached(Shifted(kept)) == expected
        assert reached(lambda shape, classes, kept=kept: Shifted(kept)) == expected


def test_a_factory_and_a_card_are_taken_too() -> None:
    def small(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes))

    card = Card(name="mine", kind="aggregator", title="Mine", target=MyMedian)
    options = {name: value for name, value in POISONED.items() if name != "model.widths"}
    made = fa.run(card, "sign-flip", **options | {"model": small})
    assert {r["problem"]["model"] for r in made} == {"small"}
    assert made.defense == "mine"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"defense": 3},
            "option 'defense' is an int, allowed: a name, or a subclass of Defense, Aggregator or SecureSum",
        ),
        ({"attack": MyMedian}, "option 'attack' is a"),
        ({"dataset": [1, 2]}, "option 'dataset' is a list"),
        ({"dataset": (1,)}, "option 'dataset' is a tuple"),
        ({"model": 3}, "option 'model' is an int"),
        ({"defense": Card(name="krum", kind="aggregator", title="x", target=MyMedian)}, "is claimed by fedarena"),
        ({"defense": MyMedian, "jobs": 2}, "option 'jobs' is 2, allowed with objects of your own: 1"),
    ],
)
def test_other_objects_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(fa.UserError, match=said):
        fa.run(**{"defense": "fedavg", "attack": "dlg", **given})


def twice(layer: nn.Module) -> nn.Module:
    """A module that has the layer in two places."""
    return nn.Sequential(nn.Flatten(), layer, layer, nn.Linear(64, 10))


class Silent(nn.Linear):
    def forward(self, x: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            nn.Linear(9, 4),
            r"linear, whose forward step \(Linear\) fails on inputs \[1, 1, 8, 8\]: .*9x4.* allowed: .*; nn.Flatten",
        ),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), r"a tensor \[1, 4\] .* allowed: a tensor \[1, 10\]"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).double(), "of float64, allowed: float32"),
        (nn.Flatten(), "has no parameters"),
        (twice(nn.Linear(64, 64)), "parameter 1.weight is also 2.weight, allowed: a name for each"),
        (Silent(64, 10), r"makes None of inputs \[1, 1, 8, 8\]"),
        (lambda input_shape, n_classes: None, "function made None, allowed: an nn.Module"),
        (lambda input_shape, n_classes: nn.Linear, "function made a class, allowed: an nn.Module"),
        (lambda: nn.Linear(64, 10), r"function of \(\), allowed: one of \(input_shape, n_classes\)"),
        (lambda input_shape, n_classes: 1 / 0, r"ZeroDivisionError.*test_own_objects.py"),
        (partial(nn.Linear, 64), "partial, which fails"),
    ],
)
def test_models_that_do_not_fit_are_refused_in_one_line(model: Any, said: str) -> None:
    with pytest.raises(fa.UserError, match=f"^option 'model' is .*{said}") as told:
        fa.run("fedavg", "dlg", model=model, rounds=2)
    assert "\n" not in str(told.value)


def rows(n: int = 60) -> tuple[Any, Any]:
    return np.random.default_rng(0).random((n, 4)).astype(np.float32), np.arange(n) % 3


def test_a_layer_is_a_model_where_its_inputs_fit() -> None:
    options: dict[str, Any] = {"dataset": rows(), "rounds": 2, "party": "server", "form": "paper"}
    alone = fa.run("fedavg", "last-layer-label", model=nn.Linear(4, 3), **options)
    named = fa.run("fedavg", "last-layer-label", model=nn.Sequential(nn.Linear(4, 3)), **options)
    assert metrics(alone) == metrics(named)


X, Y = rows()


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (np.where(X > 0.9, np.nan, X), Y, "inputs: values that are not finite"),
        (X + 1j, Y, "inputs: complex numbers"),
        (X * 300, Y, "x_train holds values from .*, expected 0 to 1"),
        (X.astype(str), Y, "inputs: no numbers"),
        (X, Y + 0.5, "classes: float64 values, allowed: whole numbers"),
        (X, Y - 1, "classes from -1 to 1, allowed: 0 or more"),
        (X, Y * 10**9, "up to 2000000000, allowed for 60 samples: 1 to 59"),
        (X, Y * 0, "up to 0, allowed for 60 samples"),
        (X, Y[1:], r"shapes \[60, 4\] and \[59\]"),
        (X[:0], Y[:0], r"shapes \[0, 4\] and \[0\]"),
        (X[:3], Y[:3], "3 samples, allowed: at least 5"),
    ],
)
def test_arrays_that_are_no_data_set_are_refused(x: Any, y: Any, said: str) -> None:
    with pytest.raises(fa.UserError, match=f"data ?set.*{said}"):
        fa.run("fedavg", "last-layer-label", dataset=(x, y), **SHORT)
