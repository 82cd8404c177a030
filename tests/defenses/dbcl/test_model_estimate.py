"""What DBCL's broadcasts tell of W: one sketch little, a few of them nearly all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.dbcl import distance, play

from fedarena.contracts.transcript import Round, cut, weights
from fedarena.core import registry
from fedarena.core.tensors import Tensors, flatten, weighted_mean
from fedarena.core.threat import Form, NotApplicable, Party, Threat
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS
from fedarena.defenses.dbcl.update_estimate import PSEUDO_INVERSE, unsketched

PARTIES = pytest.mark.parametrize("party", ["client", "eavesdropper"])


def told(defense: DBCL, rounds: Sequence[Round], party: Party, form: Form, wanted: Sequence[int]) -> list[Tensors]:
    """The models, which must exist, each of its round."""
    threat = Threat(party, form)
    found = defense.disclosures(threat, cut(rounds, threat), wanted)
    assert not isinstance(found, NotApplicable), found.reason
    assert [d.round for d in found] == sorted(wanted)
    return [d.params for d in found]


def hidden_error(defense: DBCL, rounds: Sequence[Round], party: Party, form: Form) -> float:
    """Relative distance of the last round's hidden weights from the truth."""
    (found,) = told(defense, rounds, party, form, [rounds[-1].index])
    truth = rounds[-1].params
    assert set(found) == set(truth)
    for name in set(truth) - set(defense.wire.shapes):
        assert torch.equal(found[name], truth[name])
    return distance({name: found[name] for name in defense.wire.shapes}, truth)


@PARTIES
def test_the_paper_form_is_the_network_that_clients_ran(party: Party) -> None:
    defense, rounds = play(3)
    for params, r in zip(told(defense, rounds, party, "paper", [0, 2]), (rounds[0], rounds[2]), strict=True):
        expected = defense.wire.expand(*defense.wire.open(r.down))
        assert torch.equal(flatten(params), flatten(expected))


@PARTIES
def test_a_square_gaussian_hides_nothing_from_who_inverts_it(party: Party) -> None:
    defense, rounds = play(2, Options(ratio=1.0, hash="gaussian"))
    assert hidden_error(defense, rounds, party, "adaptive") < 1e-4 < 0.3 < hidden_error(defense, rounds, party, "paper")


@PARTIES
@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_a_sketch_that_loses_nothing_hides_nothing(party: Party, form: Form) -> None:
    defense, rounds = play(2, Options(ratio=1.0, hash="balanced"))
    assert hidden_error(defense, rounds, party, form) < 1e-5


@PARTIES
@pytest.mark.parametrize("law", list(DISTRIBUTIONS))
def test_one_sketch_alone_is_undone_by_least_squares(party: Party, law: str) -> None:
    defense, rounds = play(1, Options(hash=law))
    (found,) = told(defense, rounds, party, "adaptive", [0])
    assert distance(found, unsketched(defense.wire, rounds[0].down, PSEUDO_INVERSE)) < 1e-5


TRAINING: list[dict[str, Any]] = [{}, {"local_epochs": 1}, {"server_optimizer": "adam", "server_lr": 1e-3}]


@PARTIES
@pytest.mark.parametrize("law", list(DISTRIBUTIONS))
@pytest.mark.parametrize("schedule", TRAINING)
def test_several_sketches_tell_nearly_all(party: Party, schedule: dict[str, Any], law: str) -> None:
    defense, rounds = play(12, Options(hash=law), **schedule)
    assert hidden_error(defense, rounds[-1:], party, "adaptive") > 0.4
    assert hidden_error(defense, rounds, party, "paper") > 0.4
    assert hidden_error(defense, rounds, party, "adaptive") < 0.1


def test_who_reads_the_uploads_knows_the_steps_and_then_the_model() -> None:
    defense, rounds = play(12, lr=2.0)
    exact, guessed = (hidden_error(defense, rounds, party, "adaptive") for party in ("eavesdropper", "client"))
    assert exact < 1e-3 < guessed


def test_rounds_that_were_missed_cost_little() -> None:
    defense, rounds = play(16, participants=lambda t: (0, 1, 2) if t % 5 in (0, 1, 3) or t == 15 else (1, 2))
    assert hidden_error(defense, rounds, "client", "adaptive") < 0.1


def test_a_secure_sum_shows_the_step_all_the_same() -> None:
    defense, rounds = play(6)
    mean = [weighted_mean(r.ups, weights(defense.task.sizes, r.participants)) for r in rounds]
    masked = [
        replace(r, wire=torch.zeros(3, 5), mean=m, averaged=r.participants) for r, m in zip(rounds, mean, strict=True)
    ]
    plain, summed = (told(defense, rs, "eavesdropper", "adaptive", [5])[0] for rs in (rounds, masked))
    assert torch.equal(flatten(plain), flatten(summed))


def test_with_a_rule_the_mean_of_the_uploads_is_not_taken_for_the_step() -> None:
    defense, rounds = play(12, lr=2.0)
    known = hidden_error(defense, rounds, "eavesdropper", "adaptive")
    card = registry.find("aggregator", "median")
    defense.rule = card.load()(card.parse({}))
    unknown = hidden_error(defense, rounds, "eavesdropper", "adaptive")
    assert known < 0.1 * unknown
    assert unknown < 0.3


def test_only_what_was_seen_until_a_round_counts_for_it() -> None:
    defense, rounds = play(6)
    together = told(defense, rounds, "eavesdropper", "adaptive", [2, 5])
    (alone,) = told(defense, rounds[:3], "eavesdropper", "adaptive", [2])
    assert torch.equal(flatten(together[0]), flatten(alone))


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_the_server_and_who_saw_nothing_get_a_reason(form: Form) -> None:
    defense, rounds = play(2, participants=lambda t: (1, 2))
    for party, reason in (("server", "its own model"), ("client", "saw none of the rounds")):
        threat = Threat(party, form)  # type: ignore[arg-type]
        found = defense.disclosures(threat, cut(rounds, threat), [0, 1])
        assert isinstance(found, NotApplicable)
        assert reason in found.reason
