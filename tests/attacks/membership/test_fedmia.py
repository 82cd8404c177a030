"""FedMIA beside its formula, written down slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from helpers.membership_views import digits, play
from scipy.stats import norm
from torch import Tensor

from fedarena.attacks.membership.cards.fedmia import Options
from fedarena.attacks.membership.fedmia import AGAINST_OTHERS, BY_LOSS, OF_ONE_ROUND, FedMIA
from fedarena.attacks.membership.helpers.contributions import NO_MODEL
from fedarena.contracts.final_model import WhiteBox
from fedarena.contracts.inference import Scores
from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.view import View
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.goals.metrics.auc_interval import share_below
from fedarena.problem.task import Task

CLIENTS, BATCH, ROUNDS = 4, 3, 2


def federation(clients: Sequence[tuple[int, ...]]) -> View:
    """A view of uploads that are each of one client or of several, and candidates of the first three clients."""
    made: list[Observation] = []
    for t in range(ROUNDS):
        for i, who in enumerate(clients):
            view, _ = play(batch=BATCH, rounds=1, seed=10 * t + i)
            (seen,) = view.observations
            assert isinstance(seen.simulate, PlainGradient)
            left = WhiteBox(seen.simulate.task, seen.simulate.params)
            made.append(replace(seen, round=t, clients=who, candidates=None, left=left))
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


ASKED = (0, 0, 1, 1, 2, 2)
STATISTICS = ("fedmia", "fedmia-loss", "avg-cosine", "loss-series", "grad-cosine", "grad-diff", "blackbox-loss")


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
        rounds[seen.round].append((seen.clients, [measure(seen, x, y, statistic) for x, y in samples(candidates)]))
    return rounds


def samples(candidates: Candidates) -> list[tuple[Tensor, Tensor]]:
    return list(zip(candidates.x, candidates.y, strict=True))


def measure(seen: Observation, x: Tensor, y: Tensor, statistic: str) -> float:
    if statistic in BY_LOSS:
        assert seen.left is not None
        logits = seen.left.task.outputs(seen.left.params, x[None])
        return float(logits.log_softmax(1)[0, y])
    v, a = flatten(seen.target).double(), alone(seen, x, y)
    difference = v.square().sum() - (v - a).square().sum()
    return float(difference if statistic == "grad-diff" else a @ v / a.norm() / v.norm())


def evidence(played: list[tuple[tuple[int, ...], list[float]]], k: int, client: int, against: bool) -> float:
    """What one round says of candidate k of a client, alone or against the others."""
    mine = next(row[k] for who, row in played if who == (client,))
    if not against:
        return mine
    others = torch.tensor([row[k] for who, row in played if who != (client,)], dtype=torch.float64)
    return float(norm.cdf(mine, float(others.mean()), float((others.var(correction=0) + 1e-8).sqrt())))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_score_is_that_of_the_formula(statistic: str) -> None:
    view, against = federation([(c,) for c in range(CLIENTS)]), statistic in AGAINST_OTHERS
    rounds = measured(view, statistic)[-1 if statistic in OF_ONE_ROUND else 0 :]
    expected = [sum(evidence(played, k, client, against) for played in rounds) for k, client in enumerate(ASKED)]
    assert torch.allclose(scores(view, statistic), torch.tensor(expected, dtype=torch.float64), atol=1e-5)


def test_no_two_statistics_are_the_same() -> None:
    view = federation([(c,) for c in range(CLIENTS)])
    found = [tuple(scores(view, statistic).tolist()) for statistic in STATISTICS]
    assert len(set(found)) == len(STATISTICS) == len(Options.__dataclass_fields__["statistic"].metadata["choices"])


@pytest.mark.parametrize("statistic", OF_ONE_ROUND)
def test_one_round_is_the_last_in_which_a_client_was_seen(statistic: str) -> None:
    view = federation([(c,) for c in range(CLIENTS)])
    early = tuple(o for o in view.observations if o.round == 0 or o.clients != (1,))
    rounds = measured(view, statistic)
    expected = [evidence(rounds[0 if c == 1 else 1], k, c, against=False) for k, c in enumerate(ASKED)]
    found = scores(replace(view, observations=early), statistic)
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), atol=1e-5)


@pytest.mark.parametrize("statistic", BY_LOSS)
def test_a_loss_without_a_model_is_not_applicable(statistic: str) -> None:
    attack = FedMIA(Options(statistic=statistic))
    assert attack.needs_models
    assert not FedMIA(Options()).needs_models
    view = federation([(c,) for c in range(CLIENTS)])
    hidden = (replace(view.observations[0], left=None), *view.observations[1:])
    assert attack(replace(view, observations=hidden), Rng(0)) == NotApplicable(NO_MODEL)


def trained(task: Task, params: Tensors, who: Tensor, steps: int) -> Tensors:
    """Parameters after some steps on some samples."""
    x, y = digits()
    for _ in range(steps):
        params = combine(1.0, params, -0.5, gradient(task.loss, params, x[who], y[who]))
    return params


def gained_against_others(by_heart: bool) -> list[float]:
    """By how much fedmia-loss is above loss-series in AUC, in one round of six clients, for three draws of samples.

    Args:
        by_heart: whether the common network was trained on the members themselves; else on samples of nobody.
    """
    (seen,) = play(batch=20, rounds=1)[0].observations
    assert isinstance(seen.simulate, PlainGradient)
    task, gained = seen.simulate.task, []
    view = federation([(c,) for c in range(6)])
    for seed in range(3):
        held = torch.randperm(len(digits()[1]), generator=Rng(seed).torch())[:360].split(20)
        common = trained(task, seen.simulate.params, torch.cat(held[:6] if by_heart else held[12:]), steps=60)
        left = [WhiteBox(task, trained(task, common, who, steps=10)) for who in held[:6]]
        observations = tuple(replace(o, left=left[o.clients[0]]) for o in view.observations if o.round == 0)
        x, y = (part[torch.cat(held[:12])] for part in digits())
        asked = Candidates(x, y, torch.arange(6).repeat_interleave(20).repeat(2))
        made = replace(view, observations=observations, candidates=asked)
        found = [scores(made, statistic) for statistic in ("fedmia-loss", "loss-series")]
        against, alone = (float(share_below(values[:120], values[120:]).mean()) for values in found)
        gained.append(against - alone)
    return gained


def test_against_the_others_a_loss_finds_more_members() -> None:
    """The paper's claim. What is easy for every client's network is no evidence of membership."""
    gained = gained_against_others(by_heart=False)
    assert min(gained) > 0
    assert sum(gained) / 3 > 0.03


def test_members_learned_by_heart_are_not_found_against_the_others() -> None:
    """Then all clients' networks have small losses on them, and the comparison takes that away."""
    assert sum(gained_against_others(by_heart=True)) / 3 < 0


@pytest.mark.parametrize("statistic", AGAINST_OTHERS)
@pytest.mark.parametrize("clients", [[(0, 1, 2)], [(0,), (1,)]])
def test_fewer_than_two_others_are_nothing_to_compare_with(clients: list[tuple[int, ...]], statistic: str) -> None:
    found = FedMIA(Options(statistic=statistic))(federation(clients), Rng(0))
    assert isinstance(found, NotApplicable)
    assert f"statistic={statistic} compares a client with 2 others" in found.reason
    assert len(scores(federation(clients), "avg-cosine")) == len(ASKED)


@pytest.mark.parametrize("statistic", AGAINST_OTHERS)
def test_a_round_with_fewer_than_two_others_says_nothing(statistic: str) -> None:
    """The evidence of a round lies in [0, 1]; the measure itself would be of another scale."""
    view = federation([(c,) for c in range(CLIENTS)])
    few = tuple(o for o in view.observations if o.round == 0 or o.clients in ((0,), (1,)))
    alone = tuple(o for o in view.observations if o.round == 0)
    found = scores(replace(view, observations=few), statistic)
    assert torch.equal(found, scores(replace(view, observations=alone), statistic))


def test_a_client_that_was_not_seen_has_no_evidence() -> None:
    view = federation([(c,) for c in (0, 1, 3, 4)])
    assert scores(view, "fedmia")[4:].tolist() == [0, 0]
    assert (scores(view, "fedmia")[:4] > 0).all()
