"""gradient-estimate: which rounds it looks at, and what it finds under each of the seed defenses."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from fedarena.attacks.estimate.cards.gradient_estimate import Options
from fedarena.attacks.estimate.gradient_estimate import GradientEstimates
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import FORMS, PARTIES, NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.engine import run_groups


def found(
    defense: str, *threats: Threat, attack: dict[str, str] | None = None, **schedule: Any
) -> dict[tuple[str, str], dict[str, Any]]:
    """(form, reading) → record, on a small dense network."""
    cards = compose.defense_cards(defense)
    loss = dict(cards[0].usual).get("loss", "cross-entropy")
    model = registry.find("model", "mlp").parse({"widths": "24"})
    training = Schedule(**{"rounds": 20, "batch_size": 16, "lr": 0.05, "loss": loss, **schedule})
    problem = ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=model, schedule=training)
    made = compose.parse_attack("gradient-estimate", attack or {})
    names = dict.fromkeys((defense, "fedavg"))
    groups = [GroupSpec(problem, defense=compose.parse_defense(n), attack=made, threats=threats, seed=0) for n in names]
    return {(r["form"], r["reading"]): r for r in run_groups(groups, 1)[0].records}


def metrics(defense: str, party: Any, form: Any, **more: Any) -> dict[str, float]:
    """Of the only reading, or of several that share one estimate."""
    records = list(found(defense, Threat(party, form), **more).values())
    assert {record["status"] for record in records} == {"ok"}, records[0]["reason"]
    measured: dict[str, float] = records[0]["metrics"]
    assert all(record["metrics"] == measured for record in records)
    return measured


# -- which rounds --------------------------------------------------------------------------------------


def test_victims_are_spread_over_the_window_without_its_last_round() -> None:
    watch = GradientEstimates(Options(rounds=4, start=2, window=9)).watch(Schedule(rounds=50))
    assert (watch.first, watch.last, watch.victims) == (2, 10, (2, 4, 6, 8))
    assert list(watch.written) == list(range(2, 11))
    short = GradientEstimates(Options()).watch(Schedule(rounds=5))
    assert (short.last, short.victims) == (4, (0, 1, 2, 3))


def test_a_start_after_the_end_is_refused() -> None:
    with pytest.raises(UserError, match="option 'start' is 5, allowed: at most 4 with 5 rounds"):
        GradientEstimates(Options(start=5)).watch(Schedule(rounds=5))


@pytest.mark.parametrize("change", [{"rounds": "3"}, {"start": "4"}, {"window": "8"}])
def test_every_option_acts(change: dict[str, str]) -> None:
    assert {f.name for f in fields(Options)} == {"rounds", "start", "window"}
    assert metrics("dp-sgd", "server", "paper", attack=change) != metrics("dp-sgd", "server", "paper")


def nothing(x: Any, y: Any) -> Tensors:
    """A simulator that is never asked."""
    return {}


def test_an_estimate_for_some_observations_is_none() -> None:
    with_one = Observation(0, clients=(1,), images=1, target={}, simulate=nothing, estimate={"w": torch.ones(2)})
    view = View(
        Threat("server", "paper"),
        reading="upload",
        input_shape=(2,),
        n_classes=2,
        observations=(with_one, replace(with_one, estimate=None)),
    )
    assert isinstance(GradientEstimates(Options())(view, Rng(0)), NotApplicable)
    whole = GradientEstimates(Options())(replace(view, observations=(with_one,)), Rng(0))
    assert isinstance(whole, list)
    assert len(whole) == 1


# -- what it finds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("party", PARTIES)
def test_plain_uploads_are_the_gradient(party: Any) -> None:
    for form in FORMS:
        told = metrics("fedavg", party, form)
        assert told["cosine"] == pytest.approx(1.0, abs=1e-5)
        assert told["relative_l2"] < 1e-4
        assert told["share"] == 1


def test_dbcl_s_options_find_nothing_and_its_smoother_everything() -> None:
    """Figure 3: "the cosine is about 0"; what it does not ask is what a better reader finds."""
    told = found("dbcl", *(Threat("client", form) for form in FORMS))
    for option in ("option-I", "option-II"):
        assert abs(told["paper", option]["metrics"]["cosine"]) < 0.2
        assert told["paper", option]["metrics"]["relative_l2"] > 3
        assert told["paper", option]["scores"]["leak"] == 0
    assert told["adaptive", "smoother"]["metrics"]["cosine"] > 0.99
    assert told["adaptive", "smoother"]["scores"]["leak"] > 0.9


def test_baffle_s_estimate_is_as_good_as_its_directions_allow() -> None:
    """cos ≈ √(K/(K + n + 1)) and relative L2 ≈ √((n + 1)/K) for Stein's estimate in n dimensions."""
    n, k = 24 * 64 + 24 + 240 + 10, 100
    told = metrics("baffle", "server", "paper")
    assert told["cosine"] == pytest.approx((k / (k + n + 1)) ** 0.5, rel=0.2)
    assert told["relative_l2"] == pytest.approx(((n + 1) / k) ** 0.5, rel=0.2)


def test_pbpfl_hides_the_gradient_from_others_in_the_paper_s_form_alone() -> None:
    assert metrics("pbpfl", "server", "paper")["cosine"] > 0.99
    for party in ("client", "eavesdropper"):
        assert abs(metrics("pbpfl", party, "paper")["cosine"]) < 0.2
    client = metrics("pbpfl", "client", "adaptive")
    assert client["cosine"] > 0.99
    assert client["share"] < 1
    eavesdropper = metrics("pbpfl", "eavesdropper", "adaptive")
    assert eavesdropper["cosine"] > 0.99
    assert eavesdropper["relative_l2"] < 0.1
    assert eavesdropper["share"] == 1
    assert client["canonical"] == eavesdropper["canonical"] == 1
    assert "canonical" not in metrics("pbpfl", "server", "adaptive")
    assert "canonical" not in metrics("pbpfl", "eavesdropper", "paper")


def test_noise_of_differential_privacy_drowns_the_gradient() -> None:
    loud, quiet = (
        found("dp-sgd", Threat("server", "paper"), **{"batch_size": b})["paper", "upload"]["metrics"]["cosine"]
        for b in (4, 64)
    )
    assert loud < quiet < 1


def test_clients_of_two_stage_have_nothing_to_read() -> None:
    ((_, record),) = found("two-stage", Threat("client", "adaptive")).items()
    assert record["status"] == "n/a"
    assert "no client knows" in record["reason"]
