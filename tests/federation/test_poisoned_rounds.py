"""Rounds that corrupted clients poison: what they are given, what comes back, and what stays as it was."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
import torch
from helpers.corrupted import CLIENT, finished, poisoned

from fedarena.contracts.curious_poisoning import CuriousPoisoning, Turn
from fedarena.contracts.inference import Guess, Progress
from fedarena.contracts.view import View
from fedarena.core.errors import UnusableAnswer
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows
from fedarena.core.threat import Form, Knowledge, NotApplicable, Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.poisoned_rounds import poisoned_rounds

made = cache(finished)


@dataclass
class Sends(CuriousPoisoning):
    """It sends multiples of what it would have sent, and keeps what it was given."""

    factor: float = 1.0
    level: Knowledge = "own"
    turns: list[Turn] = field(default_factory=list)

    @property
    def knows(self) -> Knowledge:
        return self.level

    def craft(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
        self.turns.append(turn)
        return {name: self.factor * up for name, up in turn.own.items()}

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        raise NotImplementedError


def honest_uploads(run: FinishedRun, t: int) -> torch.Tensor:
    r = run.round(t)
    return rows(r.ups)[[i for i, client in enumerate(r.participants) if client not in run.problem.corrupted]]


@pytest.mark.parametrize("level", ["own", "omniscient"])
def test_corrupted_clients_are_given_what_they_know(level: Knowledge) -> None:
    run, attack = made("krum"), Sends(level=level)
    poisoned(run, attack)
    for t, turn in enumerate(attack.turns):
        r = run.round(t)
        assert turn.clients == run.problem.corrupted
        assert turn.victim in turn.others
        for i, client in enumerate(turn.clients):
            own = row(r.ups, r.participants.index(client))
            assert torch.equal(flatten(row(turn.own, i)), flatten(own))
        if level == "own":
            assert turn.honest == {}
        else:
            assert torch.equal(rows(turn.honest), honest_uploads(run, t))


@pytest.mark.parametrize("defense", ["krum", "median", "fedavg", "foolsgold", "centered-clipping"])
def test_an_honest_upload_plays_the_round_as_it_was(defense: str) -> None:
    """What is read is then the server's own step, without the corrupted clients' part of a mean."""
    run = made(defense)
    read = poisoned(run, Sends())
    for t in (0, 1, 2):
        assert torch.equal(flatten(read.poisoned[t].target), flatten(read.honest[t].target))
        r = run.round(t)
        step = flatten(run.defense.direction_between(r.params, r.after))
        if defense == "fedavg":
            step = honest_uploads(run, t).mean(0)
        assert torch.allclose(flatten(read.honest[t].target), step, atol=1e-3)


def test_what_they_send_reaches_the_server_and_no_mean() -> None:
    for defense, moved in (("median", True), ("trimmed-mean", True), ("fedavg", False)):
        read = poisoned(made(defense), Sends(factor=-1e3))
        pairs = [(flatten(read.poisoned[t].target), flatten(read.honest[t].target)) for t in (0, 1, 2)]
        assert all(torch.allclose(a, b, rtol=0.01, atol=0.02) != moved for a, b in pairs)


def test_observations_are_of_the_victim_in_both_halves() -> None:
    attack = Sends()
    read = poisoned(made("krum"), attack)
    readings = read.readings(CLIENT, {}, ())
    assert not isinstance(readings, NotApplicable)
    (reading,) = readings
    victims = [(turn.victim,) for turn in attack.turns]
    assert [o.clients for o in reading.observations] == victims * 2
    assert [o.images for o in reading.observations] == [1] * 6


def test_what_is_no_upload_is_refused() -> None:
    class Short(Sends):
        def craft(self, turn: Turn, rng: Rng) -> Tensors:
            return {name: up[:1] for name, up in turn.own.items()}

    class Silent(Sends):
        def craft(self, turn: Turn, rng: Rng) -> Any:
            return None

    with pytest.raises(UnusableAnswer, match=r"Short\.craft .* an upload of 2 clients is"):
        poisoned(made("krum"), Short())
    with pytest.raises(UnusableAnswer, match=r"Silent\.craft .* returned None, allowed: uploads"):
        poisoned(made("krum"), Silent())


def test_what_is_drawn_globally_follows_from_the_seed() -> None:
    class Draws(Sends):
        def craft(self, turn: Turn, rng: Rng) -> Tensors:
            return {name: torch.randn_like(up) for name, up in turn.own.items()}

    read = [poisoned(made("median"), Draws()).poisoned for _ in range(2)]
    for t in (0, 1, 2):
        assert torch.equal(*(flatten(one[t].target) for one in read))


def test_infinities_count_as_zeros() -> None:
    read = poisoned(made("median"), Sends(factor=float("inf")))
    assert all(bool(flatten(o.target).isfinite().all()) for o in read.poisoned.values())


@pytest.mark.parametrize(
    ("defense", "schedule", "why"),
    [
        ("pairwise-masks", {}, "secure sum"),
        ("median", {"server_optimizer": "adam"}, "Adam"),
        ("pbpfl", {"loss": "mse"}, "not the model"),
    ],
)
def test_what_two_broadcasts_do_not_show_is_no_result(defense: str, schedule: dict[str, str], why: str) -> None:
    run = poisoned_rounds(finished(defense, **schedule), Sends(), CLIENT, (0, 1, 2))
    assert isinstance(run, NotApplicable)
    assert why in run.reason


def test_a_run_without_corrupted_clients_has_no_poisoned_round() -> None:
    run = made("krum")
    without = replace(run, problem=replace(run.problem, corrupted=()))
    assert isinstance(poisoned(without, Sends()).readings(CLIENT, {}, ()), NotApplicable)


@pytest.mark.parametrize(("form", "undone"), [("adaptive", True), ("paper", False)])
def test_what_is_read_is_read_as_the_protocol_reads_uploads(form: Form, undone: bool) -> None:
    """Clients of ats change their samples, which the adaptive form undoes."""
    run = poisoned_rounds(made("ats+krum"), Sends(), Threat("client", form), (0, 1, 2))
    assert not isinstance(run, NotApplicable)
    read = (*run.poisoned.values(), *run.honest.values())
    assert len(read) == 6
    assert all((o.restore is not None) == undone for o in read)
