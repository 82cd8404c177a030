"""What server and eavesdropper make of PBPFL: exact gradients, and uploads that need no secret."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.pbpfl import MODELS, cnn, cosine, make, mlp, one_hot, play, relative, shard, views
from torch import nn

from fedarena.contracts.transcript import cut
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.client_readings import EVERY
from fedarena.defenses.pbpfl.wire import GRADIENT, R_A, UPLOADS
from fedarena.models.scaling.positive_scaling import canonical, scales


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_server_has_the_exact_gradient(model, shape):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 2)
    for form, name in (("paper", "gradient"), ("adaptive", "upload")):
        (reading,) = views(defense, rounds, "server", form)
        assert reading.name == name
        for o, r in zip(reading.observations, rounds, strict=True):
            victim = r.batches[o.clients[0]]
            assert o.clients == (1,)
            plain = torch.func.grad(defense.task.loss)(r.params, *victim.images())
            assert relative(o.estimate, plain) <= 1e-9
            assert relative(o.simulate(*one_hot(victim)), o.target) <= 1e-9


@pytest.mark.parametrize("form", ["paper", "adaptive"])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_eavesdropper_simulates_without_any_secret(model, shape, form):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 1)
    (reading,) = views(defense, rounds, "eavesdropper", form)
    (o,) = reading.observations
    assert relative(o.simulate(*one_hot(rounds[0].batches[1])), o.target) <= 1e-9
    assert relative(o.simulate(*one_hot(rounds[0].batches[0])), o.target) > 0.01
    own = {n: t[1] for n, t in rounds[0].ups.items()}
    if form == "paper":
        assert all(torch.equal(o.target[n], own[GRADIENT + n]) for n in o.target)


def test_uploads_are_unmixed_and_brought_to_one_length():
    defense = make(sizes=(8, 12), gamma_scale=100)
    rounds, _ = play(defense, 1)
    (reading,) = views(defense, rounds, "server")
    (o,) = reading.observations
    plain = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())
    seen = {n.removeprefix(GRADIENT): t for n, t in o.target.items() if n.startswith(GRADIENT)}
    masks = defense.wire.factors(rounds[0].secret)
    true = {n: plain[n] / masks[n] for n in seen}
    length = float(flatten(true).norm())
    assert relative(seen, {n: t / length for n, t in true.items()}) <= 1e-9
    for kind in UPLOADS:
        assert float(flatten({n: t for n, t in o.target.items() if n.startswith(kind)}).norm()) == pytest.approx(1.0)


@pytest.mark.parametrize(("model", "shape"), MODELS)
@pytest.mark.parametrize("decades", [0.0, 2.0, 4.0])
def test_the_eavesdropper_has_the_gradient_of_the_canonical_form(model, shape, decades):
    """Whatever the masks are: they are no part of it."""
    defense = make(model(), shape, sizes=(8, 12), decades=decades, schedule={"lr": 1e-7})
    rounds, _ = play(defense, 2)  # between which hardly anything moves, so that γ̂ is right
    (reading,) = views(defense, rounds, "eavesdropper", victims=[0])
    (o,), r = reading.observations, rounds[0]
    c = canonical(defense.wire.plan, r.params)
    truth = torch.func.grad(defense.task.loss)(c, *r.batches[1].images())
    assert o.estimate_of.name == "canonical gradient"
    assert relative(o.estimate, truth) <= 1e-5
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    assert relative(o.estimate, plain) > 0.01
    lengths = defense.wire.plan.factors(scales(defense.wire.plan, r.params))
    assert relative({n: lengths[n] * g for n, g in plain.items()}, truth) <= 1e-9  # what the judge takes for the truth


def test_what_the_eavesdropper_overhears_is_right_in_the_output_bias():
    defense = make(nn.Sequential(nn.Linear(12, 200), nn.ReLU(), nn.Linear(200, 3)), sizes=(8, 12), decades=1.0)
    rounds, _ = play(defense, 1)
    truth = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())["2.bias"]
    ((paper,),), ((adaptive,),) = (
        [r.observations for r in views(defense, rounds, "eavesdropper", form)] for form in ("paper", "adaptive")
    )
    assert cosine({"b": adaptive.estimate["2.bias"]}, {"b": truth}) > 0.9
    assert cosine({"b": paper.estimate["2.bias"]}, {"b": truth}) < 0.9


def test_one_sample_shows_the_server_its_features_and_label():
    """σ of the last layer is α r_a hᵀ, whose columns sum to r_a α²; and the rest of the gradient is (y − ȳ) hᵀ."""
    defense = make(mlp(bias=False), sizes=(1, 1), schedule={"batch_size": 1})
    (r,), _ = play(defense, 1)
    params = r.params
    sigma = r.ups["sigma.4.weight"][0]
    along = r.down[R_A] @ sigma / r.down[R_A].square().sum()  # α h, masked
    alpha = along.sum().sqrt()
    h = along / alpha * defense.wire.factors(r.secret)["4.weight"][0]  # 1/r_j takes the mask off
    truth = defense.task.model[:-1]
    x, y = r.batches[0].images()
    plain = torch.func.functional_call(truth, {n: p for n, p in params.items() if not n.startswith("4")}, (x,))
    assert torch.allclose(h, plain[0])
    gradient = row(defense.wire.recover(Sent(r), r.ups)[0], 0)["4.weight"]
    residual = gradient @ h / h.square().sum()
    target = params["4.weight"] @ h - residual
    assert torch.allclose(target, torch.nn.functional.one_hot(y, 3)[0].double(), atol=1e-9)
    (reading,) = views(defense, [r], "server", victims=[0])
    (o,) = reading.observations
    x, y = r.batches[1].images()
    error = defense.task.outputs(params, x)[0] - torch.nn.functional.one_hot(y, 3)[0]
    assert torch.allclose(o.output_gradient["4.bias"], error)
    assert views(defense, [r], "eavesdropper")[0].observations[0].output_gradient is None


class Sent:
    def __init__(self, r):
        self.down, self.secret = r.down, r.secret


@pytest.mark.parametrize("form", ["paper", "adaptive"])
@pytest.mark.parametrize("party", ["server", "client", "eavesdropper"])
@pytest.mark.parametrize("model", [mlp, cnn, lambda: mlp(bias=False)])
def test_parties_get_the_model_s_precision_where_messages_have_more(model, party, form):
    shape = (1, 8, 8) if model is cnn else (12,)
    batch = {"schedule": {"batch_size": 1}, "sizes": (1, 1)} if model not in (mlp, cnn) else {"sizes": (8, 12)}
    defense = make(model(), shape, precision="float64", **batch)
    rounds, _ = play(defense, 2, dtype=torch.float32)
    for reading in views(defense, rounds, party, form, victims=[0]):
        (o,) = reading.observations
        given = [o.target, *(t for t in (o.estimate, o.output_gradient) if t)]
        assert {t.dtype for tensors in given for t in tensors.values()} == {torch.float32}
        found = o.simulate(*(t.float() for t in one_hot(rounds[0].batches[1])))
        assert set(found) == set(o.target)
        if (party, form) != ("client", "paper"):  # which is matched with the wrong model
            # The output layer, which the first layer's reading leaves out, has γ̂'s error.
            assert relative(found, o.target) <= (0.05 if reading.name == EVERY else 1e-3)
    threat = Threat(party, form)
    seen = cut(rounds, threat, replace(shard(defense), x=torch.rand(1, 300, *shape)) if party == "client" else None)
    disclosed = defense.disclosures(threat, seen, [0])
    if party != "server":
        assert {p.dtype for p in disclosed[0].params.values()} == {torch.float32}
