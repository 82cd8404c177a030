"""iDLG on the sigmoid LeNet and the digits: labels read from the output layer, then images by search."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from helpers.digit_views import make_view, score
from torch import Tensor

from fedarena.attacks.reconstruction.cards.idlg import CARD, Options
from fedarena.attacks.reconstruction.helpers.output_labels import output_labels, shown
from fedarena.attacks.reconstruction.idlg import IDLG
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

QUICK = Options(restarts=4)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def view_of(cell: str = "fedavg", victims: int = 1, batch: int = 1, **more: Schedule) -> tuple[View, list[Tensor]]:
    """A view that names the output layer, and the true labels."""
    view, truths = make_view(cell, victims, batch, schedule=more.get("schedule"))
    return replace(view, output_layer="out"), [y for _, y in truths]


def attack(view: View, options: Options = QUICK) -> Guess:
    guess = IDLG(options)(view, Rng(0))
    assert not isinstance(guess, NotApplicable)
    return guess


def without(view: View, *names: str) -> View:
    """The same without some of the tensors seen."""

    def less(o: Observation) -> Observation:
        target: Tensors = {n: t for n, t in o.target.items() if n not in names}
        return replace(o, target=target, output_bias=None if o.output_bias in names else o.output_bias)

    return replace(view, observations=tuple(less(o) for o in view.observations))


@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive"])
def test_the_label_is_right_and_the_image_comes_back(cell: str) -> None:
    view, truths = make_view(cell, victims=2)
    metrics = score(attack(replace(view, output_layer="out")), truths)
    assert metrics["label_accuracy"] == 1
    assert metrics["recovered"] == 1


@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive", "dbcl/paper"])
def test_every_label_of_single_samples_is_right_with_or_without_the_bias(cell: str) -> None:
    view, labels = view_of(cell, victims=20)
    for seen_of, where in ((view, "bias"), (without(view, "out.bias"), "rows")):
        for seen, y in zip(seen_of.observations, labels, strict=True):
            assert shown(seen_of, seen) == where
            assert output_labels(seen_of, seen, torch.zeros(1, 1, 1, 8, 8)).tolist() == y.tolist()


def test_labels_of_batches_are_counted_from_either() -> None:
    view, labels = view_of(victims=8, batch=4)
    right = Counter[str]()
    for name, seen_of in (("bias", view), ("rows", without(view, "out.bias"))):
        for seen, y in zip(seen_of.observations, labels, strict=True):
            named = Counter(output_labels(seen_of, seen, torch.zeros(1, 4, 1, 8, 8)).tolist())
            right[name] += (named & Counter(y.tolist())).total()
    assert right["bias"] == 32
    assert right["rows"] >= 28


def test_labels_of_local_updates_are_read_too() -> None:
    view, labels = view_of(victims=4, schedule=Schedule(local_epochs=3, lr=0.1))
    for seen, y in zip(view.observations, labels, strict=True):
        assert output_labels(view, seen, torch.zeros(1, 1, 1, 8, 8)).tolist() == y.tolist()


def test_an_estimate_of_the_output_bias_is_read_where_it_was_not_seen() -> None:
    view, ((y,),) = view_of()
    blind = without(view, "out.bias", "out.weight").observations[0]
    told = replace(blind, output_gradient={"out.bias": view.observations[0].target["out.bias"]})
    assert shown(view, blind) == ""
    assert shown(view, told) == "estimate"
    assert output_labels(view, told, torch.zeros(1, 1, 1, 8, 8)).tolist() == [int(y)]


def test_not_applicable_where_no_output_layer_is_seen() -> None:
    view, _ = view_of()
    blind = IDLG(QUICK)(without(view, "out.bias", "out.weight"), Rng(0))
    assert isinstance(blind, NotApplicable)
    assert "output layer" in blind.reason
    numbers = IDLG(QUICK)(replace(view, loss="regression"), Rng(0))
    assert isinstance(numbers, NotApplicable)
    assert "one output" in numbers.reason


OTHER = {
    "optimizer": {"optimizer": "adam"},
    "iterations": {"iterations": 5},
    "restarts": {"restarts": 3},
    "tv": {"tv": 0.1},
    "outside": {"outside": 5.0},
    "init": {"init": "uniform"},
    "tolerance": {"tolerance": 0.9},
}


@pytest.mark.parametrize("name", OTHER)
def test_every_option_of_the_search_acts(name: str) -> None:
    view, _ = view_of()
    usual = Options(restarts=2, iterations=10)
    (a,), (b,) = attack(view, usual), attack(view, replace(usual, **OTHER[name]))
    assert a.evaluations != b.evaluations if name == "restarts" else not torch.equal(a.images, b.images)


def test_the_learning_rate_acts_on_adam() -> None:
    view, _ = view_of()
    usual = Options(optimizer="adam", restarts=2, iterations=10)
    a, b = attack(view, usual), attack(view, replace(usual, lr=0.01))
    assert not torch.equal(a[0].images, b[0].images)


def test_options_say_which_uploads_are_attacked() -> None:
    view, _ = view_of(batch=2)
    assert isinstance(IDLG(replace(QUICK, max_batch=1))(view, Rng(0)), NotApplicable)
    watch = IDLG(Options(start=2, window=5, victims=2)).watch(Schedule(rounds=20))
    assert (watch.first, watch.last, watch.victims) == (2, 6, (2, 4))
    with pytest.raises(UserError, match="attack idlg: option 'start' is 20"):
        IDLG(Options(start=20)).watch(Schedule(rounds=20))


def test_the_card_names_this_attack() -> None:
    assert CARD.load() is IDLG
    assert CARD.parse({"restarts": "3"}) == Options(restarts=3)
