"""What holds for every poisoning attack of this package, beside the laws: every option acts, and it can start."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.core.threat import Knowledge
from fedarena.problem.task import Batch
from fedarena.testing.poisoning_laws import deeds
from fedarena.testing.same import same

NAMES = (
    "a3fl",
    "agr-tailored",
    "alie",
    "blended",
    "dba",
    "delayed",
    "dissensus",
    "edge-case",
    "gaussian",
    "gradient-ascent",
    "ipm",
    "label-flip",
    "mimic",
    "model-replacement",
    "neurotoxin",
    "min-max",
    "min-sum",
    "opt-alie",
    "opt-ipm",
    "optimized",
    "pixel-trigger",
    "poisoned-fl",
    "rop",
    "sign-flip",
    "signguard-tailored",
    "window",
)
each = pytest.mark.parametrize("name", NAMES)


def built(name: str, knows: Knowledge, **options: Any) -> Poisoning:
    """The attack; a wrapper gets another one to wrap."""
    on = knowledge(knows, rule="krum")
    return wrapping(name, on, registry.find("attack", name).options(**options))


INSIDE = {"delayed": "sign-flip", "model-replacement": "pixel-trigger", "neurotoxin": "dba", "window": "sign-flip"}
"""What wrappers wrap."""


def wrapping(name: str, on: AttackerKnowledge, options: Any) -> Poisoning:
    """The attack, around another one if it is a wrapper."""
    inside = [make(INSIDE[name], on)] if name in INSIDE else []
    made: Poisoning = registry.find("attack", name).load()(options, on, *inside)
    return made


QUICK = {"steps": 9, "step": 0.05, "alone": 4, "unlearning": 3}
"""A short search for A3FL's patch."""
OTHER: dict[str, dict[str, tuple[Any, dict[str, Any]]]] = {
    # attack: option: (another value, what else is set)
    "a3fl": {
        "target": (3, QUICK),
        "size": (3, QUICK),
        "share": (0.9, QUICK),
        "steps": (4, {"alone": 4}),
        "step": (0.02, {"steps": 9, "alone": 4}),
        "lam": (50.0, QUICK),
        "renew": (1, QUICK | {"lam": 50.0, "alone_lr": 0.5}),
        "unlearning": (0, {"steps": 9, "step": 0.05, "alone": 4, "lam": 50.0}),
        "alone": (9, {"steps": 9}),
        "alone_lr": (0.7, QUICK),
        "seed": (1, QUICK | {"lam": 50.0, "alone_lr": 0.5}),
    },
    "agr-tailored": {"perturbation": ("std", {})},
    "alie": {"z": (2.0, {})},
    "blended": {"target": (3, {}), "blend": (0.4, {}), "share": (0.9, {}), "pattern": (1, {})},
    "dba": {"target": (3, {}), "length": (1, {}), "gap": (3, {}), "share": (0.9, {})},
    "delayed": {"start": (0.6, {})},
    "edge-case": {"source": (3, {}), "target": (5, {}), "tail": (0.5, {}), "share": (0.9, {})},
    "gaussian": {"std": (1.0, {})},
    "gradient-ascent": {"scale": (1.5, {})},
    "ipm": {"epsilon": (0.5, {})},
    "label-flip": {"labels": ("random", {}), "samples": ("one", {}), "target": (2, {"labels": "one"})},
    "mimic": {"warmup": (3, {})},
    "model-replacement": {
        "epochs": (2, {}),
        "lr": (0.1, {}),
        "batch_size": (8, {}),
        "alpha": (0.9, {}),
        "ball": (0.01, {}),
        "scale": (1.5, {}),
        "disguise": ("cosine", {}),
    },
    "neurotoxin": {
        "epochs": (2, {}),
        "lr": (0.1, {}),
        "batch_size": (8, {}),
        "ball": (0.01, {}),
        "masked": (0.2, {}),
        "scale": (1.5, {}),
        "reference": ("movement", {"masked": 0.2}),
    },
    "dissensus": {"epsilon": (0.5, {})},
    "min-max": {"perturbation": ("std", {})},
    "min-sum": {"perturbation": ("sign", {}), "bound": ("max", {})},
    "opt-alie": {"evaluations": (3, {"delta": 0.2}), "delta": (0.2, {}), "ratio": (0.6, {"delta": 0.2})},
    "opt-ipm": {"evaluations": (3, {"delta": 2.0}), "delta": (2.0, {}), "ratio": (0.6, {"delta": 2.0})},
    "optimized": {"against": ("trimmed-mean", {}), "lam": (3.0, {})},
    "pixel-trigger": {"target": (3, {}), "size": (3, {}), "share": (0.9, {}), "scale": (2.0, {})},
    "poisoned-fl": {"scale": (4.0, {}), "window": (2, {})},
    "rop": {"z": (2.0, {}), "pi": (0.5, {}), "lam": (0.5, {}), "angle": (180.0, {})},
    "sign-flip": {"scale": (1.5, {})},
    "signguard-tailored": {"order": ("random", {})},
    "window": {"start": (0.3, {}), "end": (0.3, {})},
}
CHOICES = [(name, option) for name, options in OTHER.items() for option in options]


def done(name: str, **options: Any) -> list[Any]:
    """All that an attack does in nine rounds."""
    levels: tuple[Knowledge, ...] = registry.find("attack", name).load().knowledge_levels
    knows: Knowledge = "omniscient" if "omniscient" in levels else levels[0]
    return deeds(built(name, knows, **options), knows, 9)


def test_every_option_is_tried() -> None:
    """But those of tuning, which the harness reads."""
    shared = {f.name for f in dataclasses.fields(TuningOptions)}
    assert set(OTHER) == set(NAMES)
    for name, options in OTHER.items():
        assert {f.name for f in dataclasses.fields(registry.find("attack", name).options)} - shared == set(options)


@pytest.mark.parametrize(("name", "option"), CHOICES)
def test_every_option_acts(name: str, option: str) -> None:
    value, shared = OTHER[name][option]
    assert not same(done(name, **shared), done(name, **shared, **{option: value}))


@each
def test_what_it_tunes_are_options_of_its_own(name: str) -> None:
    card = registry.find("attack", name)
    made: type[Poisoning] = card.load()
    assert issubclass(card.options, TuningOptions) == bool(made.tunes)
    for option, grid in made.tunes.items():
        assert list(grid) == sorted(set(grid))
        for value in grid:
            assert getattr(card.parse({option: str(value)}), option) == value


@each
def test_the_card_says_what_it_knows_and_on_what_it_is_usually_run(name: str) -> None:
    card = registry.find("attack", name)
    assert card.form == ("adaptive" if name == "gradient-ascent" else "paper")
    assert dict(card.usual)["clients"] == "20"
    assert "knows" in dict(card.facts)


@each
def test_it_starts_on_its_usual_problem(name: str) -> None:
    card = registry.find("attack", name)
    usual = dict(card.usual)
    for knows in card.load().knowledge_levels:
        on = knowledge(knows, clients=int(usual["clients"]), corrupted=int(usual["corrupted"]))
        given = {"against": "trimmed-mean"} if name == "optimized" and knows == "own" else {}
        assert wrapping(name, on, card.parse(given)).applies() is None


def test_an_empty_poisson_batch_stays_empty() -> None:
    empty = Batch(torch.zeros(1, 0, 1, 8, 8), torch.zeros(1, 0, dtype=torch.int64))
    for name in ("label-flip", "pixel-trigger", "blended", "dba", "edge-case", "a3fl"):
        poisoned = built(name, "own").batch(empty, 0, 0, Rng(0))
        assert poisoned.x.shape == empty.x.shape
        assert poisoned.y.shape == empty.y.shape


def test_rows_of_the_toy_are_in_the_order_of_the_numbers() -> None:
    x = torch.arange(16.0).reshape(2, 8)
    assert torch.equal(rows(round_view(x).own), x)
