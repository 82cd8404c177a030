"""Images read off the gradients of a vision transformer's embeddings: exactly, up to the rank, and not at all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers.dense_views import make_view
from helpers.digit_views import digits
from torch import Tensor, nn

import fedarena as fa
from fedarena.attacks.reconstruction.april import NO_POSITIONS, SEVERAL, April, Embedding, embedding, solved
from fedarena.attacks.reconstruction.cards.april import CARD, Options
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.view import View
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.models.attention import Attention, Positions, layer_norm
from fedarena.models.vit import Patches
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def psnr(found: Tensor, true: Tensor) -> float:
    return -10 * math.log10(float((found - true).square().mean()) + 1e-30)


def images(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=Rng(1).torch(), dtype=torch.float64)


def doubled(x: Tensor, **options: str) -> View:
    """What a server sees of images at initial parameters, in double precision."""
    architecture = find("model", "vit").load()(find("model", "vit").parse({"width": "32", "layers": "1"} | options))
    shape = tuple(x.shape[1:])
    module = architecture.module(shape, 10).double()
    params = {name: p.double() for name, p in architecture.init(module, Rng(0).torch()).items()}
    task = Task(module, input_shape=shape, n_classes=10, sizes=(len(x),), schedule=Schedule(batch_size=len(x)))
    simulate = PlainGradient(task, params, (0,))
    target = simulate(x, F.one_hot(torch.arange(len(x)) + 3, 10).double())
    seen = Observation(0, clients=(0,), images=len(x), target=target, simulate=simulate, output_bias="out.bias")
    return View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=shape,
        n_classes=10,
        observations=(seen,),
        output_layer="out",
    )


def read(view: View) -> Guess:
    guess = April(Options())(view, Rng(0))
    assert not isinstance(guess, NotApplicable), guess.reason
    return guess


def position_embedding(view: View) -> Embedding:
    of = embedding(view, view.observations[0], images(*view.input_shape))
    assert isinstance(of, Embedding)
    return of


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 8, 8), {}),
        ((1, 8, 8), {"layers": "3", "heads": "1", "mean": "-0.2", "std": "0.3"}),
        ((3, 12, 8), {"patch": "4"}),
        ((3, 32, 32), {"width": "68"}),
    ],
)
def test_an_image_comes_back_exactly(shape: tuple[int, ...], options: dict[str, str]) -> None:
    x = images(1, *shape)
    (guess,) = read(doubled(x, **options))
    assert psnr(guess.images, x) > 60
    assert guess.match < 1e-12
    assert guess.labels.tolist() == [3]


@pytest.mark.parametrize(("width", "rank"), [("17", 16), ("16", 15), ("8", 7)])
def test_the_rank_is_below_the_width_and_decides(width: str, rank: int) -> None:
    x = images(1, 1, 8, 8)
    view = doubled(x, width=width, heads="1")
    of = position_embedding(view)
    table, weight = of.system(view.observations[0].target)
    assert int(torch.linalg.matrix_rank(table, rtol=1e-9)) == rank
    assert table.sum(0).abs().max() < 1e-9 * table.abs().max(), "no part along the ones"
    (guess,) = read(view)
    assert (psnr(guess.images, x) > 60) == (rank == 16)
    torch.testing.assert_close(table @ of.patches(of.scale * guess.images[0] + of.shift), weight)
    assert (guess.images - 0.5).norm() < (x - 0.5).norm() * 1.000001, "and no image that fits is nearer to grey"


def test_a_rank_below_the_patches_takes_the_least_squares_of_numpy() -> None:
    table, weight = images(5, 9), images(5, 3)
    found = solved(table, weight, middle=0.0, variance=1.0, rounding=1e-9)
    torch.testing.assert_close(found, torch.linalg.pinv(table) @ weight)
    shifted = solved(table, weight + table.sum(1, keepdim=True), middle=1.0, variance=1.0, rounding=1e-9)
    torch.testing.assert_close(shifted, found + 1)


@pytest.mark.parametrize("normed", [False, True])
def test_the_papers_system_holds_without_a_norm_alone(normed: bool) -> None:
    """Qᵀ ∂L/∂Q + Kᵀ ∂L/∂K + Vᵀ ∂L/∂V = Δ Z, from which the image follows by the inverse of E."""
    torch.manual_seed(0)
    embed, positions, attention, out = nn.Linear(4, 24), Positions(16, 24), Attention(24, 2, False), nn.Linear(24, 10)
    model = nn.Sequential(Patches(2), embed, positions, layer_norm(24) if normed else nn.Identity(), attention, out)
    model.double()
    x = images(1, 1, 8, 8)
    F.cross_entropy(model(x).mean(1), torch.tensor([3])).backward()
    three = (attention.q, attention.k, attention.v)
    assert isinstance(positions.table.weight.grad, Tensor)
    sums = torch.stack([layer.weight.detach().T @ layer.weight.grad for layer in three]).sum(0)
    z = torch.linalg.pinv(positions.table.weight.grad, rtol=1e-9) @ sums
    left = z - positions.table.weight.detach().T - embed.bias.detach()
    found = left @ torch.linalg.pinv(embed.weight.detach()).T
    assert (psnr(found, Patches(2)(x)[0]) > 60) != normed


def test_one_image_comes_back_from_local_steps() -> None:
    view, truths = make_view(victims=1, model="vit", schedule=Schedule(local_epochs=3, lr=0.05), layers="1")
    for guess, (x, y) in zip(read(view), truths, strict=True):
        assert psnr(guess.images, x) > 60
        assert guess.labels.tolist() == y.tolist()


def test_of_two_images_none_follows() -> None:
    x = images(2, 1, 8, 8)
    view = doubled(x)
    answer = April(Options())(view, Rng(0))
    assert isinstance(answer, NotApplicable)
    assert answer.reason == SEVERAL == April(Options()).unreadable(view.observations[0])
    of = Embedding("embed.weight", positions="positions.table.weight", side=2, shape=(1, 8, 8), scale=2.0, shift=-1.0)
    tried = of.image(solved(*of.system(view.observations[0].target), middle=0.0, variance=1e30, rounding=1e-12))
    assert all(psnr(tried.clamp(0, 1), one) < 15 for one in x)


@pytest.mark.parametrize(
    ("cell", "model", "options", "reason"),
    [
        ("fedavg", "vit", {"positions": "sines"}, NO_POSITIONS),
        ("fedavg", "vit", {"positions": "sines", "width": "16"}, NO_POSITIONS),
        ("dbcl", "vit", {}, "the first layer embeds no patches"),
        ("fedavg", "mlp", {}, "the first layer embeds no patches"),
        ("fedavg", "lenet-dlg", {}, "the first layer embeds no patches"),
    ],
)
def test_what_shows_no_positions_is_refused(cell: str, model: str, options: dict[str, str], reason: str) -> None:
    view, _ = make_view(cell, victims=1, model=model, **options)
    answer = April(Options())(view, Rng(0))
    assert isinstance(answer, NotApplicable)
    assert answer.reason.startswith(reason)


def test_the_ridge_follows_from_noise_that_nobody_declares() -> None:
    x = digits()[0][:1].double()
    view = doubled(x)
    of, (seen,) = position_embedding(view), view.observations
    g, size = Rng(3).torch(), 0.01 * float(seen.target["embed.weight"].std())
    noisy = {n: t + size * torch.randn(t.shape, generator=g, dtype=t.dtype) for n, t in seen.target.items()}
    (guess,) = read(replace(view, observations=(replace(seen, target=noisy),)))
    plain = of.image(solved(*of.system(noisy), middle=0.0, variance=1e30, rounding=1e-12))
    assert psnr(guess.images.clamp(0, 1), x) > psnr(plain.clamp(0, 1), x[0]) + 2


class Own(nn.Module):
    """A transformer as others write it: a convolution over patches, and a parameter [1, P, d], or [1, P + 1, d] with a
    class token."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.embed, self.places = nn.Conv2d(1, 24, 2, stride=2), nn.Parameter(0.1 * torch.randn(1, 16 + first, 24))
        self.first = nn.Parameter(0.1 * torch.randn(1, first, 24))
        self.block = nn.TransformerEncoderLayer(24, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.out = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Any:
        patches = self.embed(x).flatten(2).transpose(1, 2)
        z = torch.cat([self.first.expand(len(x), -1, -1), patches], 1) + self.places
        return self.out(self.block(z).mean(1))


@pytest.mark.parametrize("first", [0, 1])
def test_a_transformer_of_ones_own_is_read(first: int) -> None:
    torch.manual_seed(0)
    model, x, y = Own(first), images(1, 1, 8, 8).float(), torch.tensor([4])
    gradient = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
    guess = fa.invert(model, list(gradient), input_shape=(1, 8, 8), n_classes=10, attack="april")
    assert psnr(guess.images, x) > 60


def test_the_card_names_the_class() -> None:
    assert CARD.load() is April
    assert CARD.usual[0] == ("model", "vit")
