"""The joint tells members, from gradients and from a hundred projections of them; of samples that were nowhere it
tells nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.membership_views import play, score

from fedarena.attacks.membership.cards.joint_membership import Options
from fedarena.attacks.membership.helpers.candidate_scores import own
from fedarena.attacks.membership.joint_membership import JointMembership, cosine
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten

ATTACK = JointMembership(Options())


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("directions", [None, 100], ids=["gradient", "projections"])
def test_members_are_told(directions: int | None) -> None:
    assert score(ATTACK, *play(4, 30, directions))["auc_low"] > 0.7


@pytest.mark.parametrize("directions", [None, 100], ids=["gradient", "projections"])
def test_samples_that_were_nowhere_are_not(directions: int | None) -> None:
    auc = score(ATTACK, *play(4, 100, directions, present=False))["auc"]
    assert 0.43 < auc < 0.57


def test_larger_batches_hide_their_members_better() -> None:
    small, large = (score(ATTACK, *play(batch, 10, 100))["auc"] for batch in (2, 16))
    assert small > large + 0.1


def test_one_sample_is_found_exactly() -> None:
    view, members = play(1, 10)
    assert score(ATTACK, view, members)["auc"] == 1
    (answer,) = ATTACK(replace(view, observations=view.observations[:1]), Rng(0))  # type: ignore[misc]
    assert float(answer.values[members[0]]) == pytest.approx(1.0, abs=1e-6)


def test_a_candidate_s_own_is_what_it_would_give_alone() -> None:
    seen = play(4, 1)[0].observations[0]
    found = own(seen, 10)
    for x, y, a in zip(seen.candidates.x, seen.candidates.y, found, strict=True):
        alone = replace(seen.simulate, clients=(0,))
        gradient = torch.func.grad(alone.task.loss)(alone.params, x[None], y[None])
        torch.testing.assert_close(a, flatten(gradient))


def test_the_order_of_the_target_s_names_is_kept() -> None:
    view, members = play(2, 3)
    turned = tuple(replace(o, target=dict(reversed(o.target.items()))) for o in view.observations)
    again = score(ATTACK, replace(view, observations=turned), members)
    assert again["auc"] == score(ATTACK, view, members)["auc"]


def test_cosine() -> None:
    a = torch.tensor([3.0, 4.0])
    assert cosine(a, 7 * a) == pytest.approx(1)
    assert cosine(a, torch.tensor([3.0, 0.0])) == pytest.approx(0.6)
    assert cosine(a, torch.zeros(2)) == 0
