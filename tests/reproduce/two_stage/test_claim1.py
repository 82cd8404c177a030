"""Claim 1: both bounds take the same noise, rates are as said, differences follow from the means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.defenses.dp_sgd.card import Options
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.two_stage import claim1
from fedarena.reproduce.two_stage.claim1 import ALONE, ATTACKED, FIXED, NORMALISE, ONE, SCALED, Comparison, judged
from fedarena.reproduce.two_stage.common import FEDERATIONS, Experiment, Federation, group


def options_of(spec: GroupSpec) -> Options:
    options = spec.defense.options
    assert isinstance(options, Options)
    return options


@pytest.mark.parametrize("workers", [ALONE, ATTACKED])
def test_runs_differ_in_bound_threshold_and_rate_alone(workers: str) -> None:
    specs = {column: group(one, Machine(), 0) for column, one in Comparison("usps", 0.5, workers).experiments.items()}
    plain = specs[NORMALISE]
    assert options_of(plain).bound == "normalise"
    assert len(specs) == 10
    for column, spec in specs.items():
        assert options_of(spec).epsilon == 0.5
        assert options_of(spec).momentum == 0.1
        assert spec.attack == plain.attack
        if column != NORMALISE:
            assert options_of(spec).bound == "clip"
            threshold, rate = options_of(spec).clip, spec.problem.schedule.lr
            assert threshold == (SCALED | FIXED)[column]
            assert rate == pytest.approx(0.2 / threshold if column in SCALED else 0.2)


def test_clipping_below_every_gradient_is_normalising_at_rate_times_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thought experiment, on digits: C = 1e-6 at rate 0.2/C ends where normalising at 0.2 ends.

    This holds without momentum alone, which adds a share of the last upload, whose length is in units of C."""
    small = Federation("mlp", {"widths": "8"}, honest=2, samples=200, epochs=1)
    monkeypatch.setitem(FEDERATIONS, "digits", small)
    comparison = Comparison("digits", 2.0, ALONE)
    plain, tiny, long = (
        _trained(replace(experiment, settings=(*experiment.settings, ("momentum", "0"))))
        for experiment in (comparison.normalised, comparison.clipped(1e-6, 2e5), comparison.clipped(5.0, 0.04))
    )
    assert (tiny - plain).norm() < 1e-3 * plain.norm()
    assert (long - plain).norm() > 0.02 * plain.norm()


def _trained(experiment: Experiment) -> Tensor:
    """All parameters after the run."""
    spec = group(experiment, Machine(), 0)
    problem = build(spec.problem, 0, None, "cpu")
    run = federation.run(compose.make_defense(spec.defense, problem.task), problem, Rng(0).child("federation"))
    return flatten(run.params)


def test_differences_follow_from_the_means() -> None:
    found: dict[str, float | None] = dict.fromkeys((NORMALISE, *SCALED, *FIXED), 0.5)
    found |= {NORMALISE: 0.75, "C=0.1, 0.2/C": 0.625, "C=2, 0.2": 0.875, "C=0.1, 0.2": 0.25}
    assert judged(found) == {"gain_of_clipping": 0.125, "smallest_C_apart": -0.125, "C_matters": 0.625}
    assert set(judged(found | {ONE: None}).values()) == {None}


def test_a_gain_of_more_than_the_tolerance_contradicts_the_claim() -> None:
    gain, same = claim1.published(Comparison("usps", 2.0, ALONE))
    assert gain.within == (-1.0, 0.02)
    assert same.paper == 0.0
