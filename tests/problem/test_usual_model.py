"""The usual problem of a method may have options of its usual model, which no other model gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.problem.spec import usual_problem


@pytest.fixture
def attack() -> Card:
    card = registry.find("attack", "dlg")
    return replace(card, usual=(("model", "mlp"), ("model.widths", "64"), ("model.activation", "elu"), ("lr", "0.05")))


def test_the_usual_model_has_the_usual_options(attack: Card) -> None:
    spec = usual_problem({}, {}, [attack])
    assert (spec.model, spec.model_options.widths, spec.model_options.activation) == ("mlp", (64,), "elu")
    assert spec.schedule.lr == 0.05


def test_what_is_given_replaces_them(attack: Card) -> None:
    spec = usual_problem({}, {"model": {"widths": "32"}}, [attack])
    assert (spec.model_options.widths, spec.model_options.activation) == ((32,), "elu")


@pytest.mark.parametrize("model", ["mlp", "lenet-dlg"])
def test_a_model_that_is_given_has_its_own_defaults(attack: Card, model: str) -> None:
    spec = usual_problem({"model": model}, {}, [attack])
    assert spec.model_options == registry.find("model", model).parse({})


def test_another_method_s_or_data_set_s_model_has_none_of_them(attack: Card) -> None:
    later = replace(attack, usual=(("model", "cnn-mnist"),))
    assert usual_problem({}, {}, [attack, later]).model_options == registry.find("model", "cnn-mnist").parse({})
    assert usual_problem({}, {}, [later, attack]).model_options.widths == (64,)
