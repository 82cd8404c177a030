"""What holds for every poisoning attack: pure, determined by its rng, shaped like uploads, every option acts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from helpers.poisoning import knowledge, make, problem, round_view
from torch import Tensor

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, rows
from fedarena.core.threat import Knowledge
from fedarena.problem.task import Batch

NAMES = (
    "a3fl",
    "agr-tailored",
    "alie",
    "blended",
    "dba",
    "delayed",
    "edge-case",
    "gaussian",
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


def real_round(knows: Knowledge, t: int = 0) -> RoundView:
    """A round of the real federation, whose uploads are those of its initial parameters."""
    p, on = problem(), knowledge(knows)
    batches = [p.batch(c, Rng(1).child(t, c)) for c in range(10)]
    ups, _ = on.defense.clients(p.init, batches, [{}] * 10, [{}] * 10)
    bad = list(p.corrupted)
    good = [c for c in range(10) if c not in bad]
    return RoundView(
        round=t,
        participants=10,
        size=3,
        down={name: x - 0.01 * t * (1 + x.abs()) for name, x in p.init.items()},
        own={name: x[bad] for name, x in ups.items()},
        honest={name: x[good] for name, x in ups.items()} if knows == "omniscient" else {},
        honest_clients=tuple(good) if knows == "omniscient" else (),
        clients=tuple(bad),
    )


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


def knowledges(name: str) -> tuple[Knowledge, ...]:
    known: tuple[Knowledge, ...] = registry.find("attack", name).load().knowledge_levels
    return known


def same(a: Tensors, b: Tensors) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@each
def test_uploads_are_shaped_like_uploads_and_nothing_given_is_changed(name: str) -> None:
    for knows in knowledges(name):
        attack, s = built(name, knows), real_round(knows)
        before = {part: {n: x.clone() for n, x in getattr(s, part).items()} for part in ("down", "own", "honest")}
        memory: Tensors = {}
        for t in range(23):  # past the warm-up of mimic
            kept = {n: x.clone() for n, x in memory.items()}
            out, after = attack.craft(dataclasses.replace(s, round=t), memory, Rng(0).child(t))
            assert same(memory, kept)
            memory = after
            assert {n: x.shape for n, x in out.items()} == {n: x.shape for n, x in s.own.items()}
            assert all(bool(x.isfinite().all()) for x in out.values())
        assert all(same(getattr(s, part), before[part]) for part in before)


@each
def test_batches_are_left_as_they_were_given(name: str) -> None:
    attack = built(name, knowledges(name)[0])
    batch = problem().batch(0, Rng(0))
    x, y = batch.x.clone(), batch.y.clone()
    attack.batch(batch, 10, 0, Rng(0))
    assert torch.equal(batch.x, x)
    assert torch.equal(batch.y, y)


@each
def test_the_rng_determines_everything(name: str) -> None:
    for knows in knowledges(name):
        s, batch = real_round(knows), problem().batch(0, Rng(0))
        runs = []
        for _ in range(2):
            attack = built(name, knows)
            poisoned = attack.batch(batch, 10, 0, Rng(3))
            runs.append((attack.craft(s, {}, Rng(3)), {"x": poisoned.x, "y": poisoned.y}))
        assert same(runs[0][0][0], runs[1][0][0])
        assert same(runs[0][0][1], runs[1][0][1])
        assert same(runs[0][1], runs[1][1])


@each
def test_a_colluder_alone_in_its_round_sends_one_finite_upload(name: str) -> None:
    """Who takes part varies; and in a round without honest clients there is nothing to see."""
    for knows in knowledges(name):
        s = real_round(knows)
        alone = {n: x[:1] for n, x in s.own.items()}
        nobody = {n: x[:0] for n, x in s.honest.items()}
        for honest, who in ((s.honest, s.honest_clients), (nobody, ())):
            few = dataclasses.replace(
                s,
                size=1,
                own=alone,
                clients=s.clients[:1],
                honest=honest,
                honest_clients=who,
                participants=1 + len(who),
                round=19,
            )
            out, _ = built(name, knows).craft(few, {}, Rng(0))
            assert all(len(x) == 1 and bool(x.isfinite().all()) for x in out.values())


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


def deeds(name: str, **options: Any) -> list[Tensor]:
    """All that an attack does in nine rounds."""
    knows: Knowledge = "omniscient" if "omniscient" in knowledges(name) else knowledges(name)[0]
    attack, memory, done = built(name, knows, **options), {}, []
    for t in range(9):
        poisoned = attack.batch(problem().batch(0, Rng(5).child(t)), t, 0, Rng(0).child(t))
        out, memory = attack.craft(real_round(knows, t), memory, Rng(0).child(t))
        done += [poisoned.x, poisoned.y, rows(out)]
    return done


def test_every_option_is_tried() -> None:
    """But those of tuning, which the harness reads."""
    shared = {f.name for f in dataclasses.fields(TuningOptions)}
    assert set(OTHER) == set(NAMES)
    for name, options in OTHER.items():
        assert {f.name for f in dataclasses.fields(registry.find("attack", name).options)} - shared == set(options)


@pytest.mark.parametrize(("name", "option"), CHOICES)
def test_every_option_acts(name: str, option: str) -> None:
    value, shared = OTHER[name][option]
    before, after = deeds(name, **shared), deeds(name, **shared, **{option: value})
    assert any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(before, after, strict=True))


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
    assert card.form == "paper"
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
