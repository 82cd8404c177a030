"""FedMIA beside its formula, written down slowly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from helpers.membership_views import digits, play
from scipy.stats import norm
from torch import Tensor

from fedarena.attacks.membership.cards.fedmia import Options
from fedarena.attacks.membership.fedmia import FedMIA
from fedarena.contracts.inference import Scores
from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.core.threat import Threat

CLIENTS, BATCH, ROUNDS = 4, 3, 2


def federation(clients: Sequence[tuple[int, ...]]) -> View:
    """A view of uploads that are each of one client or of several, and candidates of the first three clients."""
    made: list[Observation] = []
    for t in range(ROUNDS):
        for i, who in enumerate(clients):
            view, _ = play(batch=BATCH, rounds=1, seed=10 * t + i)
            (seen,) = view.observations
            made.append(
                Observation(
                    round=t, clients=who, images=BATCH, target=seen.target, simulate=seen.simulate, candidates=None
                )
            )
    x, y = digits()
    asked = Candidates(x[:6], y[:6], torch.tensor([0, 0, 1, 1, 2, 2]))
    return View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=(1, 8, 8),
        n_classes=10,
        observations=tuple(made),
        candidates=asked,
    )


def scores(view: View, statistic: str) -> Tensor:
    (answer,) = FedMIA(Options(statistic=statistic))(view, Rng(0))  # type: ignore[misc]
    assert isinstance(answer, Scores)
    return answer.values


def alone(seen: Observation, x: Tensor, y: Tensor) -> Tensor:
    labels = torch.nn.functional.one_hot(y, 10).float()
    return flatten(seen.simulate(x.expand(BATCH, *x.shape), labels.expand(BATCH, 10))).double()


def measured(view: View, statistic: str) -> list[list[tuple[tuple[int, ...], list[float]]]]:
    """By round: the clients of each observation, and its measure for each candidate."""
    candidates = view.candidates
    assert candidates is not None
    rounds: list[list[tuple[tuple[int, ...], list[float]]]] = [[] for _ in range(ROUNDS)]
    for seen in view.observations:
        v, row = flatten(seen.target).double(), []
        for x, y in zip(candidates.x, candidates.y, strict=True):
            a = alone(seen, x, y)
            difference = v.square().sum() - (v - a).square().sum()
            row.append(float(difference if statistic == "grad-diff" else a @ v / a.norm() / v.norm()))
        rounds[seen.round].append((seen.clients, row))
    return rounds


def test_the_score_is_that_of_the_formula() -> None:
    view = federation([(c,) for c in range(CLIENTS)])
    expected = []
    for k, client in enumerate([0, 0, 1, 1, 2, 2]):
        score = 0.0
        for played in measured(view, "fedmia"):
            mine = next(row[k] for who, row in played if who == (client,))
            others = torch.tensor([row[k] for who, row in played if who != (client,)], dtype=torch.float64)
            deviation = (others.var(correction=0) + 1e-8).sqrt()
            score += float(norm.cdf(mine, float(others.mean()), float(deviation)))
        expected.append(score)
    assert torch.allclose(scores(view, "fedmia"), torch.tensor(expected, dtype=torch.float64), atol=1e-6)


@pytest.mark.parametrize("statistic", ["avg-cosine", "grad-diff"])
def test_other_statistics_sum_what_the_clients_own_uploads_give(statistic: str) -> None:
    view = federation([(c,) for c in range(CLIENTS)])
    expected = [
        sum(next(row[k] for who, row in played if who == (client,)) for played in measured(view, statistic))
        for k, client in enumerate([0, 0, 1, 1, 2, 2])
    ]
    assert torch.allclose(scores(view, statistic), torch.tensor(expected, dtype=torch.float64), atol=1e-5)


def test_a_mean_of_all_clients_has_no_others_to_compare_with() -> None:
    view = federation([(0, 1, 2)])
    assert torch.equal(scores(view, "fedmia"), scores(view, "avg-cosine"))


def test_a_client_that_was_not_seen_has_no_evidence() -> None:
    view = federation([(c,) for c in (0, 1, 3, 4)])
    assert scores(view, "fedmia")[4:].tolist() == [0, 0]
    assert (scores(view, "fedmia")[:4] > 0).all()
