"""Attacks that read other parts of the training, too, and uploads that tell nothing of the samples."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import torch
from helpers.degenerate import CLASSES
from helpers.repeatable import repeatable
from torch import Tensor

import fedarena as fa
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation.rounds import run
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.records.command import command_of
from fedarena.records.reading_names import PARTS

SHORT: dict[str, Any] = {
    "model": "mlp",
    "model.widths": 16,
    "clients": 3,
    "rounds": 60,
    "attack.window": 12,
    "attack.victims": 6,
    "party": "server",
    "form": "adaptive",
    "seeds": [0, 1],
}


def leaks(defense: str, **options: Any) -> dict[str, float]:
    """Reading → the share of victims identified, the mean over seeds; −1 where there was nothing to attack."""
    found = fa.run(CLASSES[defense], "analytic", **(SHORT | options))
    own = [r for r in found if r["defense"] == defense]
    by_reading = {r["reading"]: [s for s in own if s["reading"] == r["reading"]] for r in own}
    return {name: sum(r["metrics"].get("identified", -1.0) for r in some) / 2 for name, some in by_reading.items()}


def test_noise_that_ends_is_found_in_the_last_rounds() -> None:
    found = leaks("early-noise", other_rounds=True)
    assert [*found] == ["upload", "upload, last rounds", "upload, other rounds"]
    assert found["upload"] < 0.3
    assert found["upload, last rounds"] == 1.0
    assert leaks("early-noise") == {"upload": found["upload"]}


def test_uploads_that_carry_nothing_are_no_victims() -> None:
    """They are not withstood: else a protocol that seldom sends anything would pass for private."""
    assert leaks("rare-uploads", **{"attack.window": 60, "attack.victims": 59}) == {"upload": 1.0}
    assert leaks("late-uploads", other_rounds=True) == {
        "": -1.0,  # there is nothing in its first rounds
        "upload, last rounds": 1.0,
        "upload, other rounds": 1.0,
    }


def test_the_round_says_whose_uploads_carry_nothing() -> None:
    class Half(CLASSES["tiny-noise"]):  # type: ignore[misc]
        """Whose randomness is below the mean of its noise sends its noise alone."""

        def client(self, down: Any, batch: Any, memory: Any, noise: dict[str, Tensor]) -> Any:
            up, memory = super().client(down, batch, memory, noise)
            return {n: torch.where(noise["fc1.bias"].mean() > 0, t, noise[n]) for n, t in up.items()}, memory

    problem = build(usual_problem({"clients": "6", "model": "mlp"}, {"training": {"rounds": "3"}}), 0)
    plain, half = (made(None, problem.task) for made in (CLASSES["tiny-noise"], Half))
    for played in run(half, problem, Rng(0), watch=range(3)).rounds:
        noise = {c: half.draw(Rng(0).child("noise", played.index, c))["fc1.bias"] for c in played.participants}
        assert played.idle == tuple(c for c, drawn in noise.items() if drawn.mean() <= 0)
    assert not any(played.idle for played in run(plain, problem, Rng(0), watch=range(3)).rounds)


def test_the_rounds_that_it_chose_are_read_as_without_the_others() -> None:
    alone, beside = (fa.run("dbcl", "analytic", **SHORT, other_rounds=wanted) for wanted in (False, True))
    chosen = [r for r in repeatable(beside) if not r["reading"].endswith(PARTS)]
    point = ("mse", "identified", "label_accuracy", "ssim")  # intervals hold for all readings at once
    assert [[r["metrics"][name] for name in point] for r in chosen] == [
        [r["metrics"][name] for name in point] for r in repeatable(alone)
    ]
    assert {r["trial"]["records"] for r in beside} == {3}
    assert {r["key"] for r in alone}.isdisjoint(r["key"] for r in beside)
    assert not any("other_rounds" in r for r in alone)


@pytest.mark.parametrize("wanted", [False, True])
def test_a_record_s_command_says_which_rounds_were_read(wanted: bool) -> None:
    for record in fa.run("fedavg", "analytic", **SHORT, other_rounds=wanted):
        assert ("--other-rounds" in shlex.split(command_of(record))) == wanted


@pytest.mark.parametrize("attack", ["sign-flip", "membership-inference", "property-inference"])
def test_an_attack_on_no_single_uploads_refuses_it(attack: str) -> None:
    with pytest.raises(UserError, match=f"option 'other-rounds' is given, but {attack} attacks no single uploads"):
        fa.run("median", attack, other_rounds=True, rounds=2)
