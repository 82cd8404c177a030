"""ATS: what clients work on, what is undone, what each form identifies, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.attacked import attacked
from helpers.dbcl import mlp
from torch import Tensor

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import FORMS, Threat
from fedarena.defenses.ats.card import Options
from fedarena.defenses.ats.policies import Policies, applied, parse
from fedarena.defenses.ats.protocol import ATS, VARIANT
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.models.drawn import draw_masks
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from fedarena.runs import trial


def problem(**schedule: Any) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "16"})
    return build(attacked("mlp", model, **{"batch_size": 3, **schedule}), 0)


@pytest.mark.parametrize("schedule", [{}, {"local_epochs": 2, "local_samples": 9}])
def test_an_upload_is_that_of_samples_transformed_one_by_one(schedule: dict[str, Any]) -> None:
    p = problem(**schedule)
    defense, plain = ATS(Options(), p.task), FedAvg(None, p.task)
    batches = [p.batch(c, Rng(c)) for c in range(2)]
    noises = [defense.draw(Rng(5).child(c)) for c in range(2)]
    ups, _ = defense.clients(p.init, batches, [{}, {}], noises)
    for i, (batch, noise) in enumerate(zip(batches, noises, strict=True)):
        x = batch.x.flatten(0, 1)
        assert len(noise[VARIANT]) >= len(x)
        variants = [defense.policies.variants[int(k)] for k in noise[VARIANT][: len(x)]]
        changed = torch.cat([applied(v, one[None]) for v, one in zip(variants, x, strict=True)])
        wanted, _ = plain.client(p.init, replace(batch, x=changed.reshape(batch.x.shape)), {}, {})
        torch.testing.assert_close(flatten(row(ups, i)), flatten(wanted), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(flatten(defense.client(p.init, batch, {}, noise)[0]), flatten(wanted))
        unknown, _ = defense.client(p.init, batch, {}, {})
        assert torch.equal(flatten(unknown), flatten(plain.client(p.init, batch, {}, {})[0]))


def test_models_that_draw_are_taken() -> None:
    model = registry.find("model", "mlp").parse({"widths": "16", "bottleneck": "4"})
    p = build(attacked("mlp", model, batch_size=3), 0)
    defense, plain, drawn = ATS(Options(), p.task), FedAvg(None, p.task), draw_masks(p.task.model, (1, 3), Rng(1))
    batch, noise = replace(p.batch(0, Rng(0)), masks=drawn), defense.draw(Rng(5))
    changed = defense.policies.apply(batch.x[0], noise[VARIANT][:3])[None]
    wanted, _ = plain.client(p.init, replace(batch, x=changed), {}, {})
    assert torch.equal(flatten(defense.client(p.init, batch, {}, noise)[0]), flatten(wanted))


def test_policies_and_signs_are_drawn_evenly() -> None:
    defense = ATS(Options(), problem(batch_size=300).task)
    drawn = torch.cat([defense.draw(Rng(t))[VARIANT] for t in range(20)]).bincount(minlength=16)
    assert len(drawn) == 16
    expected = float(drawn.sum()) / 16
    assert (drawn - expected).abs().max() < 5 * expected**0.5


def digits() -> Tensor:
    p = problem()
    return p.inputs(torch.arange(200))


@pytest.mark.parametrize(("text", "share"), [("43-18-18", 0.95), ("3-1-7+43-18-18", 0.85)])
def test_an_image_tells_which_policy_it_had(text: str, share: float) -> None:
    """Where it came back as if the variant were known, or as good."""
    policies, x = Policies(parse(text)), digits()
    which = torch.randint(len(policies.variants), (len(x),), generator=Rng(0).torch())
    v = policies.apply(x, which)
    told = (policies(v) - x).square().flatten(1).mean(1)
    untold = (v - x).square().flatten(1).mean(1)
    assert float((told < untold).float().mean()) > share


def test_the_paper_form_hides_what_the_adaptive_form_identifies() -> None:
    """The claim of the paper, and that undoing public transformations takes most of it back."""
    model = registry.find("model", "mlp").parse({"widths": "32"})
    spec = GroupSpec(
        problem=attacked("mlp", model, batch_size=1, rounds=42),
        defense=compose.parse_defense("ats"),
        attack=compose.parse_attack("analytic", {"victims": "40", "window": "42"}),
        threats=tuple(Threat("server", form) for form in FORMS),
        seed=0,
    )
    found = {}
    for one in trial.prepare(spec):
        record = trial.attack(one)[0]
        found[record["form"]] = record["metrics"]["identified"]
    assert found["paper"] < 0.25
    assert found["adaptive"] > 0.4


@pytest.mark.parametrize("text", ["", "50", "1-2-3-4", "-1", "1+", "a"])
def test_other_policies_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="allowed: one to 3 numbers from 0 to 49") as refused:
        ATS(Options(policies=text), problem().task)
    assert "\n" not in str(refused.value)


def test_rows_of_numbers_are_refused() -> None:
    task = Task(mlp(), input_shape=(12,), n_classes=3, sizes=(20, 20), schedule=Schedule(rounds=2, lr=0.1))
    with pytest.raises(UserError, match="allowed with ats: images"):
        ATS(Options(), task)
