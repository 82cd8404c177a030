"""LiRA and the loss threshold: their scores, their shadow models, and what they find on models that overfit."""

from __future__ import annotations

from dataclasses import fields, replace
from statistics import fmean
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers.membership_models import attacked, group, prepared

from fedarena.attacks.membership.cards.membership_inference import Options
from fedarena.attacks.membership.helpers.shadows import merged, shadows
from fedarena.attacks.membership.membership_inference import sureness, surprise
from fedarena.contracts.final_model import BlackBox, WhiteBox
from fedarena.contracts.observation import Candidates
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.federation import compose
from fedarena.goals.prepared import OpenRecord
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule


def seen(**settings: Any) -> View:
    (cell,) = prepared(group(**settings))
    assert isinstance(cell, OpenRecord)
    return cell.challenge.view


def test_sureness_is_the_logit_of_the_confidence_whoever_asks() -> None:
    view = seen()
    assert isinstance(view.model, WhiteBox)
    asked = view.candidates
    assert asked is not None
    out = view.model.outputs(asked.x).double()
    others = out.masked_fill(F.one_hot(asked.y, 10).bool(), -torch.inf)
    expected = out.gather(1, asked.y[:, None]).squeeze(1) - others.logsumexp(1)
    torch.testing.assert_close(sureness(view.model, asked), expected)
    hidden = BlackBox(view.model.task, view.model.params)
    torch.testing.assert_close(sureness(hidden, asked), expected)
    assert hidden.queries == len(asked.y)


def test_sureness_orders_as_the_loss_does_and_goes_on_where_that_is_zero() -> None:
    class Fixed(WhiteBox):
        def outputs(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(1)

    view = seen()
    assert view.model is not None
    model, y = Fixed(view.model.task, {}), torch.zeros(5, dtype=torch.int64)
    x = torch.zeros(5, 10)
    x[:, 0] = torch.tensor([-3.0, 0.0, 5.0, 60.0, 90.0])
    found = sureness(model, Candidates(x, y))
    assert (found.diff() > 0).all()
    assert F.cross_entropy(x.double(), y, reduction="none")[-2:].tolist() == [0.0, 0.0]


def test_without_confidences_it_is_minus_the_logarithm_of_the_loss() -> None:
    view = seen(loss="mse")
    assert isinstance(view.model, WhiteBox)
    assert view.candidates is not None
    out, y = view.model.outputs(view.candidates.x).double(), view.candidates.y
    expected = -(0.5 * (out - F.one_hot(y, 10)).square().sum(1)).log()
    torch.testing.assert_close(sureness(view.model, view.candidates), expected)


def test_surprise_by_hand() -> None:
    sure, out = torch.tensor([3.0, 3.0]), torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]])
    assert surprise(sure, out, own_variance=True).tolist() == pytest.approx([0.5, 1 / 3**0.5])
    assert surprise(sure, out, own_variance=False).tolist() == pytest.approx([1 / 3.5**0.5, 1 / 3.5**0.5])


def test_a_high_surprise_is_what_the_authors_score_is() -> None:
    """1 − Pr[Z > φ], Z ~ N(μ, σ²)."""
    generator = Rng(0).torch()
    sure, out = torch.randn(50, generator=generator).double(), torch.randn(9, 50, generator=generator).double()
    theirs = torch.distributions.Normal(out.mean(0), out.std(0)).cdf(sure)
    assert torch.equal(surprise(sure, out, own_variance=True).argsort(), theirs.argsort())


# -- shadow models -------------------------------------------------------------------------------------


def drawn(view: View, plain: bool, count: int = 2) -> list[torch.Tensor]:
    assert view.protocol is not None
    assert view.initial is not None
    assert view.population is not None
    made = shadows(view.protocol, view.initial, view.population, count, plain, Rng(0), lambda share, text: None)
    return [flatten(s.params) for s in made]


def test_shadows_differ_and_those_through_the_protocol_carry_its_noise() -> None:
    plainly, through = (drawn(seen(defense="dp-sgd", rounds=5), plain) for plain in (True, False))
    quiet, federated = (drawn(seen(rounds=5), plain) for plain in (True, False))
    assert not torch.equal(*plainly)
    for a, b in zip(plainly, quiet, strict=True):
        assert torch.equal(a, b)  # of the protocol nothing but the schedule is in them
    noise, batches = (float((a[0] - b[0]).norm()) for a, b in ((through, plainly), (federated, quiet)))
    assert noise > 2 * batches > 0


@pytest.mark.parametrize(
    ("schedule", "batch", "steps"),
    [
        (Schedule(batch_size=8), 32, 1),
        (Schedule(batch_size=8, participation=0.5), 16, 1),
        (Schedule(batch_size=5, local_epochs=2, lr=0.1), 20, 8),
        (Schedule(batch_size=5, local_epochs=1, participation=0.5, lr=0.1), 10, 4),
    ],
)
def test_a_plain_shadow_takes_as_many_steps_with_batches_of_the_same_total(
    schedule: Schedule, batch: int, steps: int
) -> None:
    problem = build(group(samples=20).problem, 0)
    whole = replace(problem, task=replace(problem.task, schedule=schedule))
    one = merged(whole)
    assert one.batch(0, Rng(0)).y.shape == (steps, batch)
    assert schedule.steps(20) == steps
    assert sorted(one.shards[0].tolist()) == sorted(torch.cat(problem.shards).tolist())


def test_with_fewer_than_two_shadows_left_it_says_so() -> None:
    view = seen(rounds=3)

    def broken(module: Any, generator: Any) -> dict[str, torch.Tensor]:
        return {name: torch.full_like(p, torch.inf) for name, p in module.named_parameters()}

    method = compose.make_inference(group().attack)  # type: ignore[arg-type]
    answer = method.run(replace(view, initial=broken), Rng(0), lambda share, text: None)
    assert answer.reason == "0 of 3 shadow models ended with finite parameters; two are needed"  # type: ignore[union-attr]


# -- what it finds -------------------------------------------------------------------------------------


def test_a_loss_threshold_has_no_adaptive_form() -> None:
    record = attacked(form="adaptive", statistic="loss")
    assert (record["status"], record["scores"]) == ("n/a", {})
    assert "trains no shadows" in record["reason"]


CHANGES = [{"statistic": "loss"}, {"shadows": "2"}, {"variance": "example"}]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_option_acts(change: dict[str, str]) -> None:
    assert {name for c in CHANGES for name in c} == {f.name for f in fields(Options)}
    assert attacked(rounds=30)["metrics"] != attacked(rounds=30, **change)["metrics"]


@pytest.mark.parametrize("statistic", ["loss", "lira"])
def test_members_of_an_overfit_model_are_told(statistic: str) -> None:
    found = [attacked(seed=s, statistic=statistic, samples=20)["metrics"] for s in range(3)]
    assert all(m["member_accuracy"] == 1 > m["stranger_accuracy"] for m in found)
    assert fmean(m["auc"] for m in found) > 0.6


def test_lira_finds_more_than_the_loss_does_where_few_are_accused() -> None:
    loss, lira = (
        fmean(attacked(seed=s, statistic=statistic, **more)["metrics"]["tpr_at_1_percent_fpr"] for s in range(3))
        for statistic, more in (("loss", {}), ("lira", {"shadows": "4"}))
    )
    assert lira > loss + 0.02


@pytest.mark.parametrize("statistic", ["loss", "lira"])
def test_privacy_hides_them(statistic: str) -> None:
    plain, private = (
        fmean(
            attacked(seed=s, statistic=statistic, samples=20, defense=defense, options=options)["metrics"]["auc"]
            for s in range(3)
        )
        for defense, options in (("fedavg", ()), ("dp-sgd", (("epsilon", "0.5"),)))
    )
    assert plain > private + 0.05
    assert abs(private - 0.5) < 0.07


def test_what_pbpfl_gives_away_tells_as_much_as_what_fedavg_does() -> None:
    masked, plain = (
        attacked(defense=d, statistic="loss", samples=20, loss="mse")["metrics"]["auc"] for d in ("pbpfl", "fedavg")
    )
    assert plain > 0.7
    assert masked == pytest.approx(plain, abs=0.03)
