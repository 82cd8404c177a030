"""Spotlight: which poison it chooses against which rule, and what that gains."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from helpers.corrupted import CLIENT, finished, poisoned

from fedarena.attacks.reconstruction.spotlight import Spotlight, poisons, relative, split, stand_ins, step
from fedarena.contracts.curious_poisoning import Turn
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows
from fedarena.core.threat import NotApplicable
from fedarena.federation.poisoned_rounds import poisoned_rounds

made = cache(finished)
RNG = Rng(5)


def attack(**options: str) -> Spotlight:
    return Spotlight(registry.find("attack", "spotlight").parse({"victims": "3", **options}))


def turns(defense: str, **options: str) -> list[Turn]:
    """What it is given in three rounds."""
    kept: list[Turn] = []

    class Keeps(Spotlight):
        def craft(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
            kept.append(turn)
            return super().craft(turn, rng)

    poisoned_rounds(made(defense), Keeps(attack(**options).options), CLIENT, (0, 1, 2))
    return kept


def off(defense: str, turn: Turn, sent: torch.Tensor) -> float:
    """How far the step is from the victim's upload."""
    others = rows(turn.honest)
    return relative(step(turn, others, sent, RNG), others[turn.others.index(turn.victim)])


def test_its_play_of_the_server_is_the_server_s_step() -> None:
    for defense in ("krum", "median", "fedavg"):
        run = made(defense)
        for t, turn in enumerate(turns(defense, knows="omniscient")):
            r = run.round(t)
            true = flatten(run.defense.direction_between(r.params, r.after))
            assert torch.allclose(step(turn, rows(turn.honest), rows(turn.own), RNG), true, atol=1e-3)


def test_krum_picks_the_upload_between_the_pair() -> None:
    run = made("krum")
    read = poisoned(run, attack(knows="omniscient"))
    for t, o in read.poisoned.items():
        r = run.round(t)
        victim = rows(r.ups)[r.participants.index(o.clients[0])]
        assert torch.allclose(flatten(o.target), victim, atol=1e-3)


def test_a_split_moves_a_median_to_the_victim_where_it_can() -> None:
    """Of seven values the two corrupted ones move the median over three of five honest ones."""
    for turn in turns("median", knows="omniscient"):
        others = rows(turn.honest)
        v = others[turn.others.index(turn.victim)]
        reached = (step(turn, others, split(turn, others, RNG), RNG) - v).abs() < 1e-6
        ranks = (others < v).sum(0)
        differ = (others.sort(0).values.diff(dim=0) > 0).all(0)
        assert torch.equal(reached[differ], ((ranks >= 1) & (ranks <= 3))[differ])


@pytest.mark.parametrize("defense", ["krum", "median", "trimmed-mean", "multi-krum"])
def test_the_chosen_poison_is_the_nearest_of_all(defense: str) -> None:
    gained = list[bool]()
    for turn in turns(defense, knows="omniscient"):
        sent = attack(knows="omniscient").craft(turn, RNG)
        assert not isinstance(sent, NotApplicable)
        tried = poisons(turn, rows(turn.honest), RNG)
        assert off(defense, turn, rows(sent)) == pytest.approx(min(off(defense, turn, one) for one in tried.values()))
        gained.append(off(defense, turn, rows(sent)) < off(defense, turn, tried["own"]))
    assert sum(gained) >= 2  # Krum may pick the victim anyway


def test_a_mean_is_left_alone() -> None:
    (turn, *_) = turns("fedavg")
    sent = attack().craft(turn, RNG)
    assert not isinstance(sent, NotApplicable)
    assert torch.equal(rows(sent), rows(turn.own))


def test_own_samples_stand_for_those_of_others() -> None:
    (turn, *_) = turns("krum")
    played = stand_ins(turn, RNG)
    assert played.shape == (len(turn.others), rows(turn.own).shape[1])
    assert not torch.equal(played, stand_ins(turn, RNG.child("another")))
    honest = rows(turns("krum", knows="omniscient")[0].honest)
    assert 0.2 < float(played.norm(dim=1).mean() / honest.norm(dim=1).mean()) < 5
