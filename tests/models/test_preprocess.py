"""The head of the two-stage paper's models: what it computes, and that every form computes it; their options."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import nn
from torch.func import functional_call, grad, vmap

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows, stack
from fedarena.models.preprocess import Preprocess
from fedarena.problem import client_steps as forms
from fedarena.problem.client_steps import stacked
from fedarena.problem.client_steps.chain import chain_of, front_of
from fedarena.problem.local_training import upload
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

MODELS = pytest.mark.parametrize("name", ["mlp-two-stage", "cnn-two-stage"])
PAPER = {"mean": "0.2469", "std": "0.2853", "size": "28"}


def make(name, shape, **text):
    card = find("model", name)
    architecture = card.load()(card.parse(text))
    module = architecture.module(shape, 10)
    return module, architecture.init(module, Rng(0).torch())


def test_normalises_and_enlarges_as_pillow_does():
    """Bilinear enlargement with Pillow, which the authors' torchvision transform calls, is the reference."""
    image = pytest.importorskip("PIL.Image")
    x = torch.rand(16, 16, generator=Rng(0).torch())
    big = image.fromarray(x.numpy()).resize((28, 28), image.Resampling.BILINEAR)
    truth = (torch.from_numpy(np.asarray(big).copy()) - 0.2) / 0.3
    assert torch.allclose(Preprocess(0.2, 0.3, 28)(x[None, None])[0, 0], truth, atol=1e-5)


@pytest.mark.parametrize("sd", [0.3, 0.75, 2.0, 10.0])
@pytest.mark.parametrize("shape", [(16, 16), (9, 5)])
def test_blurs_as_scipy_does_with_zeros_outside(sd, shape):
    x = torch.rand(2, 3, *shape, generator=Rng(0).torch(), dtype=torch.float64)
    truth = ndimage.gaussian_filter(x.numpy(), (0, 0, sd, sd), mode="constant")
    assert torch.allclose(Preprocess(0.0, 1.0, None, sd)(x), torch.from_numpy(truth), rtol=1e-12, atol=1e-14)
    assert torch.allclose(Preprocess(0.0, 1.0, None, sd)(x.float()).double(), torch.from_numpy(truth), atol=1e-6)


def test_blurs_before_it_enlarges_and_normalises():
    x = torch.rand(2, 1, 16, 16, generator=Rng(0).torch())
    apart = Preprocess(0.2, 0.3, 28)(Preprocess(0.0, 1.0, None, 0.75)(x))
    assert torch.equal(Preprocess(0.2, 0.3, 28, 0.75)(x), apart)
    assert not torch.allclose(Preprocess(0.0, 1.0, None, 0.75)(Preprocess(0.2, 0.3, 28)(x)), apart, atol=0.01)


@MODELS
def test_activations_are_what_their_names_say(name):
    kinds = {"elu": nn.ELU, "relu": nn.ReLU}
    for option, kind in kinds.items():
        module, _ = make(name, (1, 28, 28), activation=option)
        found = [m for m in module if isinstance(m, tuple(kinds.values()))]
        assert len(found) == (1 if name == "mlp-two-stage" else 4)
        assert all(type(m) is kind for m in found)


OTHERS = {
    "init": ("xavier-he", "default", "uniform-half"),
    "mean": ("0", "0.3"),
    "std": ("1", "0.5"),
    "size": ("none", "20", "24"),
    "blur": ("0", "0.4", "0.75"),
    "activation": ("elu", "relu"),
    "weights_seed": ("none", "1234", "0"),
}


@pytest.mark.parametrize(
    ("name", "changed"),
    [(n, f.name) for n in ("mlp-two-stage", "cnn-two-stage") for f in dataclasses.fields(find("model", n).options)],
)
def test_every_option_changes_the_output(name, changed):
    x = torch.rand(4, 1, 16, 16, generator=Rng(0).torch())
    outs = []
    for value in OTHERS[changed]:
        module, params = make(name, (1, 16, 16), **{changed: value})
        outs.append(functional_call(module, params, (x,)))
    for i, a in enumerate(outs):
        assert all((a - b).abs().max() > 1e-3 * a.abs().max() for b in outs[:i])


@MODELS
def test_is_the_plain_model_on_prepared_inputs(name):
    front, params = make(name, (1, 16, 16), **PAPER)
    plain, same = make(name, (1, 28, 28))
    assert list(params) == list(same)
    assert all(torch.equal(params[n], same[n]) for n in params)
    x = torch.rand(3, 1, 16, 16, generator=Rng(1).torch())
    prepared = Preprocess(0.2469, 0.2853, 28)(x)
    assert torch.equal(functional_call(front, params, (x,)), functional_call(plain, same, (prepared,)))


@MODELS
def test_is_absent_where_it_would_do_nothing(name):
    assert front_of(make(name, (1, 28, 28))[0]) is None
    assert front_of(make(name, (1, 28, 28), size="28")[0]) is None
    assert front_of(make(name, (1, 28, 28), blur="0")[0]) is None
    for option in ({"mean": "0.1"}, {"std": "0.5"}, {"size": "20"}, {"blur": "0.75"}):
        assert front_of(make(name, (1, 28, 28), **option)[0]) is not None


@pytest.mark.parametrize("epochs", [0, 2])
def test_stacked_form_applies_it(epochs, monkeypatch):
    module, params = make("mlp-two-stage", (1, 8, 8), mean="0.3", std="0.2", size="12", blur="0.75")
    assert chain_of(module, 3) is not None
    ran = []
    train = stacked.train
    monkeypatch.setattr(stacked, "train", lambda *args: ran.append(1) or train(*args))
    task = Task(
        module,
        input_shape=(1, 8, 8),
        n_classes=10,
        sizes=(8,) * 3,
        schedule=Schedule(batch_size=4, local_epochs=epochs, lr=0.05),
    )
    g, steps = Rng(2).torch(), task.schedule.steps(8)
    params = {n: p.double() for n, p in params.items()}
    batches = [
        Batch(
            torch.rand(steps, 4, 1, 8, 8, generator=g, dtype=torch.float64),
            torch.randint(0, 10, (steps, 4), generator=g),
        )
        for _ in range(3)
    ]
    truth = stack([upload(task.loss, params, b, task.schedule) for b in batches])
    got = forms.uploads(task, task.loss, params, batches)
    assert ran
    assert torch.allclose(rows(got), rows(truth), rtol=1e-8, atol=1e-10)


@MODELS
def test_differentiable_twice_under_vmap(name):
    module, params = make(name, (1, 10, 10), mean="0.3", std="0.2", size="18", blur="0.75")
    x, y = torch.rand(2, 1, 1, 10, 10, generator=Rng(3).torch()), torch.tensor([[1], [2]])

    def match(x, y):
        loss = grad(lambda p: torch.nn.functional.cross_entropy(functional_call(module, p, (x,)), y))
        return sum(g.square().sum() for g in loss(params).values())

    slopes = vmap(grad(match))(x, y)
    alone = torch.stack([grad(match)(x[i], y[i]) for i in range(2)])
    assert torch.allclose(slopes, alone, rtol=1e-3, atol=1e-5 * float(alone.abs().max()))
    assert slopes.any()


def test_only_images_have_a_size():
    with pytest.raises(UserError, match="takes images"):
        make("mlp-two-stage", (12,), size="28")


def test_only_images_are_blurred():
    with pytest.raises(UserError, match="takes images"):
        make("mlp-two-stage", (12,), blur="0.75")
