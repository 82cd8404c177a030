"""The laws of `fedarena.testing`, for every registered method; and what holds for every method of this package."""

from __future__ import annotations

import dataclasses
import importlib.util
from functools import lru_cache
from typing import Any

import pytest
import torch

from fedarena.contracts.inference import Inference
from fedarena.core import registry
from fedarena.core.card import KINDS, Card, Kind
from fedarena.problem.schedule import Schedule
from fedarena.testing.card_laws import metadata, needs_are_enforced, option_differs
from fedarena.testing.check import ALL, outcome_of
from fedarena.testing.law import Law, Method

METHODS: list[tuple[Kind, str]] = [(kind, name) for kind in KINDS for name in registry.registries()[kind].names()]
each_method = pytest.mark.parametrize(("kind", "name"), METHODS, ids=[f"{kind}-{name}" for kind, name in METHODS])

BRIEF: dict[str, dict[str, str]] = {
    "affine-model": {"victims": "1", "steps": "1"},
    "a3fl": {"steps": "5", "alone": "2", "unlearning": "1"},
    "april": {"victims": "1"},
    "dager": {"victims": "1"},
    "chosen-features": {"victims": "1", "steps": "1"},
    "dlg": {"victims": "1", "iterations": "3", "restarts": "1"},
    "fedmia": {"rounds": "1"},
    "fishing": {"victims": "1", "iterations": "2"},
    "idlg": {"victims": "1", "iterations": "3", "restarts": "1"},
    "imprint": {"victims": "1"},
    "inconsistent-masks": {"victims": "1"},
    "inconsistent-models": {"victims": "1"},
    "inverting-gradients": {"victims": "1", "iterations": "2", "restarts": "1"},
    "joint-membership": {"rounds": "3"},
    "loki": {"victims": "1"},
    "marginal-membership": {"rounds": "3"},
    "membership-inference": {"shadows": "2"},
    "mobilenet-head": {"weights": "random", "size": "32"},
    "model-inversion": {"iterations": "3", "directions": "2"},
    "multi-step": {"victims": "1", "iterations": "2", "restarts": "1"},
    "optimized": {"lam": "1"},
    "property-inference": {"classifier": "ridge", "rounds": "8", "round_batches": "8"},
    "r-gap": {"victims": "1"},
    "source-inference": {"rounds": "1"},
    "spear": {"victims": "1", "draws": "500"},
    "spotlight": {"victims": "1", "draws": "20", "plays": "2"},
    "tag": {"victims": "1", "iterations": "2"},
    "trap-weights": {"victims": "1"},
    "upload-regression": {"rounds": "1"},
}
"""Options of methods that would take longer, or could not be tried without."""
OF_ONE_PURPOSE = ("foolsgold", "foundationfl", "rlr")
"""Rules that a flipped sign passes: `test_every_method_acts.py` has what they withstand."""


LEARNS_LITTLE = ("censor", "dp-fedavg", "dp-ftrl", "precode")
"""Defenses of which the same file says what they learn: one nothing, three little among twenty clients."""


def cases() -> list[Any]:
    return [
        pytest.param(law, kind, name, id=f"{kind}-{name}-{law.name}")
        for kind, name in METHODS
        for law in ALL
        if kind in law.kinds
        and law.concerns(Method(registry.find(kind, name), None))
        and (law.name, name) not in EXCEPTIONS
    ]


EXCEPTIONS = {("withstands-the-flipped", name) for name in OF_ONE_PURPOSE} | {
    ("defense-learns", name) for name in LEARNS_LITTLE
}
if torch.cuda.is_available():
    EXCEPTIONS.add(("devices-agree", "property-inference"))  # its answers depend on the last digits


@lru_cache(maxsize=1)
def brief(kind: Kind, name: str) -> Method:
    """A method as all of its laws try it, one after another, which share what they train."""
    card = registry.find(kind, name)
    return Method(card, card.parse(BRIEF.get(name, {})))


@pytest.mark.parametrize(("law", "kind", "name"), cases())
@pytest.mark.usefixtures("quick_judge")
def test_a_method_keeps_a_law(law: Law, kind: Kind, name: str) -> None:
    outcome = outcome_of(law, brief(kind, name))
    if outcome.status == "n/a":
        pytest.skip(outcome.reason)
    assert outcome.status == "holds", outcome.reason


SCHEDULE = pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Schedule)])


@SCHEDULE
def test_every_option_of_the_schedule_changes_itself_alone(name: str) -> None:
    option_differs(Schedule, name, "training")


@SCHEDULE
def test_an_option_of_the_schedule_is_refused_where_it_would_do_nothing(name: str) -> None:
    needs_are_enforced(Schedule, name, "training")


def is_built_in(card: Card) -> bool:
    return registry.registries()[card.kind].entry(card.name).origin == "fedarena"


def test_there_is_something_of_every_kind() -> None:
    assert {kind for kind, _ in METHODS} == set(KINDS)


@each_method
def test_an_attack_of_this_package_says_its_goal(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if is_built_in(card):
        assert bool(card.goal) == (kind == "attack")


@each_method
def test_a_card_of_this_package_cites_equations_or_says_that_it_is_its_own(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if is_built_in(card) and kind in ("defense", "aggregator", "attack"):
        assert card.equations
        assert card.paper or card.departures[0].startswith("Not from a paper")


@each_method
def test_a_defense_says_what_crosses_the_wire_and_who_knows_what(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if kind in ("defense", "secure") and is_built_in(card):
        labels = {label for label, _ in card.facts}
        assert {
            "down",
            "up",
            "server knows",
            "malicious server chooses",
            "client knows",
            "eavesdropper knows",
        } <= labels


@each_method
def test_built_in_cards_live_apart_from_their_implementation(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if is_built_in(card):
        assert isinstance(card.target, str)
        assert importlib.util.find_spec(card.target.partition(":")[0]) is not None


@each_method
def test_only_attacks_that_read_have_options_of_one_party_or_form(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    for field in dataclasses.fields(card.options):
        if any(metadata(card.options, field.name)[what] is not None for what in ("party", "form")):
            assert kind == "attack"
            assert issubclass(card.load(), Inference), "poisoning has neither party nor form"
