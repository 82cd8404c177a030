"""The regression of uploads on candidates, beside libraries and known answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.membership_views import play
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from fedarena.attacks.membership.cards.upload_regression import Options
from fedarena.attacks.membership.helpers.candidate_scores import own
from fedarena.attacks.membership.helpers.contributions import asked_about, contributions
from fedarena.attacks.membership.upload_regression import UploadRegression, coefficients, to_one_scale, unit
from fedarena.contracts.inference import Scores, Watch
from fedarena.contracts.observation import Candidates
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation import compose
from fedarena.problem.schedule import Schedule


def with_candidates(view: View, client: int = 0) -> View:
    """The view with the candidates of its only observation as those of a client's data set."""
    (seen,) = view.observations
    assert seen.candidates is not None
    asked = Candidates(seen.candidates.x, seen.candidates.y, torch.full((len(seen.candidates.y),), client))
    return replace(view, observations=(replace(seen, candidates=None),), candidates=asked)


@given(seed=st.integers(0, 10_000), ridge=st.sampled_from([1e-3, 0.1, 1.0]))
def test_coefficients_are_those_of_scikit_learn(seed: int, ridge: float) -> None:
    generator = Rng(seed).torch()
    a = torch.randn(6, 30, generator=generator, dtype=torch.float64)
    v = torch.randn(30, generator=generator, dtype=torch.float64)
    expected = Ridge(alpha=ridge, fit_intercept=False).fit(unit(a).T.numpy(), unit(v).numpy()).coef_
    assert torch.allclose(coefficients(a, v, ridge), torch.tensor(expected), atol=1e-10)


def test_a_mean_of_some_rows_has_its_weight_on_these_alone() -> None:
    a = torch.randn(8, 50, generator=Rng(0).torch(), dtype=torch.float64)
    behind = torch.tensor([1.0, 0, 1, 0, 0, 1, 0, 0], dtype=torch.float64)
    v = behind @ a / 3
    expected = behind / 3 * a.norm(dim=1) / v.norm()
    assert torch.allclose(coefficients(a, v, 1e-9), expected, atol=1e-6)


def test_nothing_says_nothing() -> None:
    a = torch.eye(3, 5, dtype=torch.float64)
    assert coefficients(a, torch.zeros(5, dtype=torch.float64), 0.1).tolist() == [0, 0, 0]
    a[1] = 0.0
    assert coefficients(a, torch.ones(5, dtype=torch.float64), 0.1)[1] == 0


def test_the_scores_of_each_client_are_brought_to_one_scale() -> None:
    scores = torch.tensor([3.0, 0, 4, 0, -0.5, 0], dtype=torch.float64)
    scaled = to_one_scale(scores, torch.tensor([7, 2, 7, 2, 5, 5]))
    assert torch.allclose(scaled, scores / torch.tensor([12.5, 1, 12.5, 1, 0.125, 0.125], dtype=torch.float64).sqrt())


def test_contributions_are_those_of_one_candidate_at_a_time() -> None:
    view, _ = play(batch=5, rounds=1)
    (seen,) = view.observations
    assert seen.candidates is not None
    everyone = torch.arange(len(seen.candidates.y))
    slowly = torch.stack(own(seen, view.n_classes)).double()
    assert torch.allclose(contributions(seen, seen.candidates, everyone, view.n_classes), slowly, atol=1e-7)
    some = everyone[[3, 1]]
    assert torch.allclose(contributions(seen, seen.candidates, some, view.n_classes), slowly[[3, 1]], atol=1e-7)


def test_members_of_a_batch_are_told_without_error() -> None:
    for seed in range(3):
        view, (members,) = play(batch=6, rounds=1, seed=seed)
        (answer,) = UploadRegression(Options(ridge=1e-4))(with_candidates(view), Rng(0))  # type: ignore[misc]
        assert isinstance(answer, Scores)
        assert answer.values[members].min() > answer.values[~members].max()


def test_uploads_of_other_clients_do_not_count() -> None:
    view, _ = play(batch=6, rounds=1)
    other = with_candidates(view, client=1)
    assert other.candidates is not None
    assert not asked_about(other.observations[0], other.candidates).any()
    (answer,) = UploadRegression(Options())(other, Rng(0))  # type: ignore[misc]
    assert isinstance(answer, Scores)
    assert not answer.values.any()


def test_it_reads_rounds_of_the_whole_training_that_the_harness_draws() -> None:
    schedule = Schedule(rounds=50)
    watch = UploadRegression(Options(rounds=7)).watch(schedule)
    assert (watch.first, watch.last, watch.victims) == (0, 49, tuple(range(49)))
    drawn = watch.draw(Rng(1))
    assert len(drawn.victims) == 7
    assert drawn.drawn is None
    assert {*drawn.victims} <= {*range(49)}
    assert {*drawn.written} == {s for t in drawn.victims for s in (t - 1, t, t + 1) if s >= 0}
    assert watch.draw(Rng(2)) != drawn == watch.draw(Rng(1))
    assert len(UploadRegression(Options(rounds=99)).watch(schedule).draw(Rng(0)).victims) == 49
    assert not drawn.elsewhere(schedule, Rng(0))
    opening = Watch.opening(4, schedule)
    assert opening.draw(Rng(0)) == opening


@pytest.mark.parametrize(
    ("options", "text"),
    [({"ridge": "0"}, "option 'ridge' is 0"), ({"rounds": "0"}, "option 'rounds' is 0")],
)
def test_bad_options_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(UserError, match=text):
        compose.parse_attack("upload-regression", options)
