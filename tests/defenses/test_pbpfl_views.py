"""What server and eavesdropper make of PBPFL: exact gradients, and uploads that need no secret."""

from __future__ import annotations

import pytest
import torch
from pbpfl_play import MODELS, cosine, make, mlp, one_hot, play, relative, views
from torch import nn

from fedarena.defenses.pbpfl_wire import GRADIENT, R_A, UPLOADS
from fedarena.tensors import flatten, row


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
    masks = defense.factors(rounds[0].secret)
    true = {n: plain[n] / masks[n] for n in seen}
    length = float(flatten(true).norm())
    assert relative(seen, {n: t / length for n, t in true.items()}) <= 1e-9
    for kind in UPLOADS:
        assert float(flatten({n: t for n, t in o.target.items() if n.startswith(kind)}).norm()) == pytest.approx(1.0)


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
    _, params = defense.open(r.down), r.params
    sigma = r.ups["sigma.4.weight"][0]
    along = r.down[R_A] @ sigma / r.down[R_A].square().sum()  # α h, masked
    alpha = along.sum().sqrt()
    h = along / alpha * defense.factors(r.secret)["4.weight"][0]  # 1/r_j takes the mask off
    truth = defense.task.model[:-1]
    x, y = r.batches[0].images()
    plain = torch.func.functional_call(truth, {n: p for n, p in params.items() if not n.startswith("4")}, (x,))
    assert torch.allclose(h, plain[0])
    gradient = row(defense.recover(Sent(r), r.ups)[0], 0)["4.weight"]
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
