"""`fedarena.testing.check`: each law catches what breaks it, and lets sound methods through."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.broken_methods import BROKEN, SOUND, Masks, Middle
from helpers.paths import ROOT
from torch import nn

import fedarena as fa
from fedarena.cli import main
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.poisoning import Poisoning
from fedarena.core import registry
from fedarena.core.card import KINDS, Card
from fedarena.core.errors import UserError
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.models.architecture import Architecture, blank
from fedarena.testing import LawBroken, check, examine, laws

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CASES = [(law, card) for law, cards in BROKEN.items() for card in cards]


def test_every_law_is_broken_below() -> None:
    assert set(BROKEN) == set(laws())


@pytest.mark.parametrize(("law", "card"), CASES, ids=[f"{law}-{getattr(c.target, '__name__', '')}" for law, c in CASES])
def test_a_law_catches_what_breaks_it(law: str, card: Card) -> None:
    with pytest.raises(LawBroken) as told:
        check(card, laws=[law])
    assert told.value.law == law
    assert f"{card.kind} '{card.name}' breaks the law '{law}'" in str(told.value)
    assert told.value.figure in str(told.value)
    assert f"To do: {told.value.remedy}." in str(told.value)


@pytest.mark.parametrize("card", SOUND, ids=[f"{card.kind}-{card.target.__name__}" for card in SOUND])
def test_a_sound_method_keeps_all_other_laws(card: Card) -> None:
    broken = {outcome.law: outcome.reason for outcome in examine(card) if outcome.status == "broken"}
    assert set(broken) == ({"defense-acts"} if card.name == "plainly" else set()), broken


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_keeps_all_laws(path: Path) -> None:
    outcomes = check(path)
    assert {outcome.law for outcome in outcomes if outcome.status == "holds"}


def test_classes_names_and_cards_are_taken() -> None:
    wanted = ["stream-decides"]
    assert [o.method for o in check(Middle, laws=wanted)] == ["middle"]
    assert [o.method for o in check("median", laws=wanted)] == ["median"]
    assert [o.kind for o in check(Masks, laws=["vectors-stay"])] == ["secure"]
    assert [o.status for o in check(registry.find("aggregator", "flame"), laws=wanted, noise=0.5)] == ["holds"]


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("nowhere", {}, "unknown method 'nowhere'"),
        ("median", {"laws": ["all"]}, "unknown law 'all'"),
        ("flame", {"noise": -1.0}, "option 'noise' is -1.0, allowed: "),
        (3, {}, "a method is an int, allowed: a card, a class, a name, or a file with cards"),
        ("nowhere.py", {}, "option 'plugin' is .*nowhere.py, which cannot be read"),
    ],
)
def test_bad_input_is_told_in_one_line(method: object, given: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said) as told:
        check(method, **given)  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


def test_laws_are_listed_by_kind() -> None:
    assert all(says and not says.endswith(".") for says in laws().values())
    assert {law for kind in KINDS for law in laws(kind)} == set(laws())
    assert "messages-hide" in laws("secure")
    assert "messages-hide" not in laws("defense")
    with pytest.raises(UserError, match="unknown kind 'rule', allowed: defense, "):
        laws("rule")


def test_the_names_are_offered_by_the_package() -> None:
    assert fa.testing.check is check
    assert "testing" in dir(fa)


def test_an_error_in_a_method_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "stumbling_rule.py"
    path.write_text(
        "from fedarena.contracts.aggregator import Aggregate, Aggregator\n"
        "from fedarena.core.card import Card\n"
        "from fedarena.core.tensors import flatten\n"
        "class Stumbling(Aggregator):\n"
        "    def __call__(self, x, call):\n"
        "        return Aggregate(flatten(x), None)\n"
        'CARD = Card(name="stumbling", kind="aggregator", title="It stumbles", target=Stumbling)\n'
    )
    with pytest.raises(LawBroken, match=r"it raises .* \(in __call__, stumbling_rule.py:6\)"):
        check(path, laws=["vector-fits"])


class NumbersAsWeights(Aggregator):
    def __call__(self, x, call):  # type: ignore[no-untyped-def]
        return Aggregate(x.mean(0), used=(1, 2))  # type: ignore[arg-type]


class WithoutCall(Aggregator):
    def __call__(self, x):  # type: ignore[no-untyped-def, override]
        return Aggregate(x.mean(0), used=None)


class WithoutMemory(FedAvg):
    def client(self, down, batch, memory, noise):  # type: ignore[no-untyped-def]
        return super().client(down, batch, memory, noise)[0]


class Flat(WithoutMemory):
    def client(self, down, batch, memory, noise):  # type: ignore[no-untyped-def]
        up, memory = FedAvg.client(self, down, batch, memory, noise)
        return {name: t.flatten() for name, t in up.items()}, memory


class WithoutNoise(FedAvg):
    def client(self, down, batch, memory):  # type: ignore[no-untyped-def, override]
        return super().client(down, batch, memory, {})


class WithoutState(FedAvg):
    def aggregate(self, *given):  # type: ignore[no-untyped-def]
        return None


class WithoutSum(Masks):
    def __call__(self, vectors, rng):  # type: ignore[no-untyped-def]
        return vectors.sum(0)


class OwnUploads(Poisoning):
    def craft(self, view, memory, rng):  # type: ignore[no-untyped-def]
        return view.own


class WithoutKnowledge(Poisoning):
    def __init__(self, options):  # type: ignore[no-untyped-def]
        super().__init__(options, None)  # type: ignore[arg-type]

    def craft(self, view, memory, rng):  # type: ignore[no-untyped-def]
        return view.own, memory


class Idler(Poisoning):
    pass


class Aimless(Inference):
    goal = "nonsense"  # type: ignore[assignment]

    def run(self, view, rng, progress):  # type: ignore[no-untyped-def]
        return []


class ThreeScores(Inference):
    goal = "membership"

    def run(self, view, rng, progress):  # type: ignore[no-untyped-def]
        return [Scores(torch.zeros(3)) for _ in view.observations]


class FixedInputs(Architecture):
    def module(self, input_shape, n_classes):  # type: ignore[no-untyped-def]
        return nn.Sequential(nn.Flatten(), nn.Linear(63, n_classes))


class Double(FedAvg):
    def client(self, down, batch, memory, noise):  # type: ignore[no-untyped-def]
        up, memory = super().client(down, batch, memory, noise)
        return {name: t.double() for name, t in up.items()}, memory


class WithoutModule(Architecture):
    def module(self, input_shape, n_classes):  # type: ignore[no-untyped-def]
        return None


@pytest.mark.parametrize(
    ("method", "place", "told"),
    [
        (NumbersAsWeights, "__call__", "returned a tuple (an int, an int) as used, allowed: None, or a tensor [1]"),
        (WithoutCall, "__call__", "takes (self, x), allowed: (self, x, call)"),
        (WithoutMemory, "client", "returned a dict, allowed: an upload and a memory"),
        (Flat, "client", "the server's step has conv1.weight [300], "),
        (WithoutNoise, "client", "takes (self, down, batch, memory), allowed: (self, down, batch, memory, noise)"),
        (WithoutState, "aggregate", "returned None, allowed: a State"),
        (WithoutSum, "__call__", "returned a Tensor, allowed: an Exchange"),
        (OwnUploads, "craft", "returned a dict, allowed: uploads {"),
        (WithoutKnowledge, "__init__", "takes (self, options), allowed: (self, options, knowledge)"),
        (Idler, "", "has no craft and no batch of its own"),
        (Aimless, "", "has the goal 'nonsense', allowed: reconstruction, "),
        (ThreeScores, "run", "returned a tensor [3] as values, allowed: a list of 1 Scores with values a tensor [2]"),
        (WithoutModule, "module", "returned None, allowed: a Module"),
        (FixedInputs, "module", "fails on inputs [2, 1, 20, 20]: RuntimeError: mat1 and mat2 shapes"),
        (Double, "client", "what it returns makes conv1.weight float64, allowed: float32"),
    ],
)
def test_what_does_not_fit_the_contract_is_named(method: type, place: str, told: str) -> None:
    with pytest.raises(LawBroken) as broken:
        check(method)
    whole = ".".join(filter(None, (method.__qualname__, place)))
    assert re.search(rf"\b{whole} \(test_check.py:\d+\):? {re.escape(told)}", broken.value.figure), broken.value
    assert "(in " not in broken.value.figure


def load():  # type: ignore[no-untyped-def]
    return Dataset(**PARTS)


def of_numbers(data_dir=None):  # type: ignore[no-untyped-def]
    return PARTS["x_train"]


def of_five(data_dir=None):  # type: ignore[no-untyped-def]
    return Dataset(**{**PARTS, "n_classes": "5"})


PARTS: dict[str, Any] = {
    "name": "toy",
    **dict.fromkeys(("x_train", "x_test"), np.ones((6, 2), np.float32)),
    **dict.fromkeys(("y_train", "y_test"), np.arange(6) % 5),
    "scale": 1.0,
    "n_classes": 5,
    "provenance": Provenance("made here"),
}


@pytest.mark.parametrize(
    ("load", "told"),
    [
        (load, r"dataset load \(test_check.py:\d+\) takes \(\), allowed: \(data_dir\)$"),
        (of_numbers, r"dataset of_numbers \(test_check.py:\d+\) returned a ndarray, allowed: a Dataset$"),
        (of_five, r"'toy': n_classes is a str, expected a whole number \(in of_five, test_check.py:\d+\)$"),
    ],
)
def test_what_is_no_data_set_is_named(load: Any, told: str) -> None:
    outcomes = [one for one in examine(Card(name="toy", kind="dataset", title="t", target=load)) if one.error]
    assert {"samples-fit", "loading-repeats", "labels-occur", "held-out-is-apart"} <= {one.law for one in outcomes}
    assert all(one.error and re.search(told, one.error.figure) for one in outcomes), outcomes


class ForDigits(Architecture):
    def module(self, input_shape, n_classes):  # type: ignore[no-untyped-def]
        return blank(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes)))


class Drawing(Architecture):
    def module(self, input_shape, n_classes):  # type: ignore[no-untyped-def]
        return nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(input_shape[0] * input_shape[1] ** 2, n_classes))


def test_a_model_for_the_digits_alone_is_checked_on_their_inputs() -> None:
    assert {outcome.status for outcome in check(ForDigits)} == {"holds", "n/a"}


def test_an_error_of_torch_s_own_lines_names_the_class() -> None:
    with pytest.raises(LawBroken) as broken:
        check(Drawing, laws=["gradients-are-finite"])
    told = r"^Drawing \(test_check.py:\d+\) leads to RuntimeError: vmap: .*"
    assert re.search(told, broken.value.figure), broken.value
    assert "(in " not in broken.value.figure


def test_the_command_prints_a_table_and_ends_with_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = str(ROOT / "examples" / "my_rule.py")
    assert main(["check", example, "--laws=stream-decides,unanimity-wins"]) == 0
    out = capsys.readouterr().out
    assert "1 holds, 1 n/a" in out
    assert main(["check", "foolsgold", "--laws=withstands-the-flipped"]) == 1
    assert "1 broken" in capsys.readouterr().out
    assert main(["check", "flame", "--laws=stream-decides", "--set=noise=0.5", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["status"] == "holds"
    assert main(["check", "flame", "--set=noise"]) == 2
    assert "option 'set' is 'noise', which is not OPTION=VALUE" in capsys.readouterr().err


def test_a_broken_law_is_in_the_json_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "foolsgold", "--laws=withstands-the-flipped", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["status"], "error" in found) == ("broken", False)
    assert "To do: " in found["reason"]


def test_a_broken_law_crosses_processes() -> None:
    told = LawBroken("three of four", "mend it", "a-law", "it says so", "rule 'mine'")
    for other in (copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert (str(other), other.figure, other.method) == (str(told), "three of four", "rule 'mine'")


def test_the_page_of_the_documentation_lists_every_law() -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    shown = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.MULTILINE))
    assert shown == laws()
