"""DBCL's protocol against the network written with explicit sketch matrices."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.dbcl import cnn, distance, mlp, parameters, play, samples
from torch import Tensor, nn

from fedarena.contracts.defense import State
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, nbytes, row
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.protocol import DBCL, SketchedLoss
from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS, BucketSketch, draw
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

EACH = pytest.mark.parametrize("law", list(DISTRIBUTIONS))
LOCAL = [(o, law) for o in ("sgd", "momentum", "adam") for law in DISTRIBUTIONS if (o, law) != ("adam", "gaussian")]
"""What a client may train with; the last pair is refused."""
MODELS = pytest.mark.parametrize(("make", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])


def dense_forward(model: nn.Sequential, params: Tensors, S: Tensors, x: Tensor) -> Tensor:
    """The paper's forward pass with S as a matrix: Z = (X S) W̃ᵀ + b, X the patches of a convolution (Appendix B)."""
    for i, layer in enumerate(model):
        weight, bias = f"{i}.weight", f"{i}.bias"
        if weight in S and isinstance(layer, nn.Conv2d):
            patches = F.unfold(x, layer.kernel_size, padding=layer.padding, stride=layer.stride).transpose(1, 2)
            z = patches @ S[weight] @ params[weight].T + params[bias]
            side = (x.shape[-1] + 2 * layer.padding[0] - layer.kernel_size[0]) // layer.stride[0] + 1
            x = z.transpose(1, 2).reshape(len(x), -1, side, side)
        elif weight in S:
            x = x @ S[weight] @ params[weight].T + params[bias]
        elif weight in params:
            x = F.linear(x, params[weight], params[bias])
        else:
            x = layer(x)
    return x


def dense_sketches(defense: DBCL, down: Tensors) -> Tensors:
    """S of every sketched layer, as a matrix."""
    return {name: sketch.dense() for name, sketch in defense.wire.open(down)[1].items()}


@EACH
@MODELS
def test_gradient_is_that_of_the_explicit_network(make: type, shape: tuple[int, ...], law: str) -> None:
    defense, (first,) = play(1, Options(hash=law), make(), shape, dtype=torch.float64)
    params = {n: t.clone().requires_grad_() for n, t in defense.wire.open(first.down)[0].items()}
    S = dense_sketches(defense, first.down)
    assert set(S) == {f"{n}.weight" for n, _ in defense.task.layers[:-1]}
    for c, batch in enumerate(first.batches):
        loss = F.cross_entropy(dense_forward(defense.task.model, params, S, batch.x[0]), batch.y[0])
        gradients = dict(zip(params, torch.autograd.grad(loss, list(params.values())), strict=True))
        alone, _ = defense.client(first.down, batch, {}, {})
        assert distance(alone, gradients) < 1e-12
        assert distance(row(first.ups, c), gradients) < 1e-12


@EACH
def test_broadcast_is_the_sketch_of_each_hidden_layer(law: str) -> None:
    defense, rounds = play(2, Options(hash=law), cnn(), (1, 8, 8), dtype=torch.float64)
    for r in rounds:
        S = dense_sketches(defense, r.down)
        for name, w in r.params.items():
            torch.testing.assert_close(r.down[name], w.flatten(1) @ S[name] if name in S else w)
    assert int(rounds[0].down["seed"]) != int(rounds[1].down["seed"])


@EACH
def test_server_steps_along_the_mean_times_the_transpose(law: str) -> None:
    """W ← W − η mean(Γ) Sᵀ, with clients weighted by N_c (Eq. 2)."""
    defense, (r,) = play(1, Options(hash=law), cnn(), (1, 8, 8), sizes=(8, 4, 20), dtype=torch.float64)
    S = dense_sketches(defense, r.down)
    for name, w in r.params.items():
        mean = sum(n / 32 * up for n, up in zip((8, 4, 20), r.ups[name], strict=True))
        direction = (mean @ S[name].T).reshape(w.shape) if name in S else mean
        torch.testing.assert_close(r.after[name], w - 0.1 * direction)


@MODELS
@pytest.mark.parametrize(("optimizer", "law"), LOCAL)
def test_local_training_is_the_authors(optimizer: str, make: type, shape: tuple[int, ...], law: str) -> None:
    """Sketching inside the layer of a network that holds W, trained by torch.optim, moves W by −upload·Sᵀ."""
    local = {"local_epochs": 3, "client_optimizer": optimizer, "lr": 0.01}
    defense, (r,) = play(1, Options(hash=law), make(), shape, dtype=torch.float64, **local)
    sketches = defense.wire.open(r.down)[1]
    for c, batch in enumerate(r.batches):
        w = {n: t.clone().requires_grad_() for n, t in r.params.items()}
        if optimizer == "adam":
            optim: torch.optim.Optimizer = torch.optim.Adam(w.values(), lr=0.01)
        else:
            optim = torch.optim.SGD(w.values(), lr=0.01, momentum=0.9 if optimizer == "momentum" else 0)
        for x, y in zip(batch.x, batch.y, strict=True):
            flat = {n: t.flatten(1) @ (S := sketches[n].dense()) @ S.T if n in sketches else t for n, t in w.items()}
            optim.zero_grad()
            defense.task.loss({n: t.reshape(w[n].shape) for n, t in flat.items()}, x, y).backward()
            optim.step()
        moved = combine(1.0, r.params, -1.0, {n: t.detach() for n, t in w.items()})
        upload = defense.wire.expand(row(r.ups, c), sketches)
        # Adam divides by √v + 1e-8: where a gradient is about 1e-8, rounding is magnified.
        assert distance(upload, moved) < (1e-6 if optimizer == "adam" else 1e-10)


def test_gaussian_refuses_local_adam_alone() -> None:
    """Adam steps entry by entry of W, out of the row space of Sᵀ; a client of FedSGD takes no step."""
    play(1, Options(hash="gaussian"), client_optimizer="adam")
    with pytest.raises(UserError, match="leaves the row space"):
        play(1, Options(hash="gaussian"), client_optimizer="adam", local_epochs=1)


def masks_of_size(defense: DBCL, kept: float) -> tuple[int, dict[str, Tensor]]:
    """A seed with which torch's dropout keeps exactly s inputs of every hidden layer, and its masks."""
    for seed in range(10_000):
        torch.manual_seed(seed)
        masks = {n: F.dropout(torch.ones(shape[1]), 1 - kept) > 0 for n, shape in defense.wire.shapes.items()}
        if all(int(mask.sum()) == round(kept * len(mask)) for mask in masks.values()):
            return seed, masks
    raise AssertionError("no seed keeps exactly s")


def test_uniform_is_dropout_with_the_same_mask() -> None:
    """The paper's remark: torch's dropout before every hidden layer gives the same loss, and the gradient Γ Sᵀ."""
    defense, (r,) = play(1, Options(hash="uniform"), dtype=torch.float64)
    seed, masks = masks_of_size(defense, 0.5)
    sketches = {n: sampled(mask) for n, mask in masks.items()}
    params, (x, y) = r.params, (r.batches[0].x[0][:1], r.batches[0].y[0][:1])  # torch has a mask for each sample
    first, sigmoid, *rest = defense.task.model
    dropped = nn.Sequential(nn.Dropout(0.5), first, sigmoid, nn.Dropout(0.5), *rest).double()
    names = [*params]
    for parameter, value in zip(dropped.parameters(), params.values(), strict=True):
        parameter.data = value.clone()
    torch.manual_seed(seed)
    loss = F.cross_entropy(dropped(x), y)
    truth = dict(zip(names, torch.autograd.grad(loss, list(dropped.parameters())), strict=True))
    down = {n: sketches[n].apply(w) if n in sketches else w for n, w in params.items()}
    sketched = SketchedLoss(defense.task, defense.wire, sketches)
    torch.testing.assert_close(sketched(down, x, y), loss)
    assert distance(defense.wire.expand(torch.func.grad(sketched)(down, x, y), sketches), truth) < 1e-12


def sampled(mask: Tensor) -> BucketSketch:
    """The S that samples the coordinates of a mask."""
    d, s = len(mask), int(mask.sum())
    bucket = torch.zeros(d, dtype=torch.int64)
    bucket[mask] = torch.arange(s)
    return BucketSketch(bucket, mask.float(), s, (d / s) ** 0.5)


@pytest.mark.parametrize("d", [12, 25])
def test_uniform_draws_such_a_mask(d: int) -> None:
    for seed in range(20):
        drawn = draw(seed, 0, d, 6, "uniform")
        mask = drawn.dense().square().sum(1) > 0
        torch.testing.assert_close(drawn.dense() @ drawn.dense().T, (S := sampled(mask).dense()) @ S.T)


def test_half_the_bytes() -> None:
    """MNIST's 784-200-200-10: 100,810 floats and a 4-byte seed instead of 199,210 floats."""
    task = Task(mlp((784, 200, 200, 10)), input_shape=(784,), n_classes=10, sizes=(4,), schedule=Schedule(batch_size=2))
    batch = samples((784,), task.schedule, 4, 10, torch.Generator().manual_seed(0))
    params = parameters(task.model, 0)
    counted = {}
    for defense in (DBCL(Options(), task), FedAvg(NoOptions(), task)):
        sent = defense.broadcast(State(params), Rng(0))
        up, _ = defense.client(sent.down, batch, {}, {})
        counted[type(defense)] = (nbytes(sent.down), nbytes(up))
    assert counted == {DBCL: (4 * 100_810 + 4, 4 * 100_810), FedAvg: (4 * 199_210, 4 * 199_210)}


@EACH
def test_a_broadcast_determines_nothing_but_the_sketch(law: str) -> None:
    """Servers whose weights differ by anything with N S = 0 send the same bytes."""
    task = Task(mlp(), input_shape=(12,), n_classes=3, sizes=(4,), schedule=Schedule())
    defense, params = DBCL(Options(hash=law), task), parameters(task.model, 0, torch.float64)
    sent = defense.broadcast(State(params), Rng(0)).down
    other, g = dict(params), torch.Generator().manual_seed(0)
    for name, S in dense_sketches(defense, sent).items():
        null = torch.eye(len(S), dtype=torch.float64) - S @ torch.linalg.pinv(S)
        other[name] = params[name] + torch.rand(params[name].shape, generator=g, dtype=torch.float64) @ null
        assert (other[name] - params[name]).norm() > 0.1
    again = defense.broadcast(State(other), Rng(0)).down
    for name, t in sent.items():
        torch.testing.assert_close(again[name], t)


@EACH
def test_sketch_size_varies_within_its_bounds(law: str) -> None:
    _, rounds = play(30, Options(ratio=0.25, vary=0.5, hash=law))
    sizes = {r.down["0.weight"].shape[1] for r in rounds}
    assert sizes <= set(range(3, 10))
    assert len(sizes) > 3
    assert {r.down["0.weight"].shape[1] for r in play(5, Options(ratio=0.25))[1]} == {3}


@EACH
@pytest.mark.parametrize("epochs", [0, 1])
def test_client_step_differentiates_in_the_batch(law: str, epochs: int) -> None:
    """What an adaptive attack needs: ∂Γ/∂x, under vmap too."""
    defense, (r,) = play(1, Options(hash=law), local_epochs=epochs)
    x, y = r.batches[0].x[0], r.batches[0].y[0]

    def size(x: Tensor) -> Tensor:
        up, _ = defense.client(r.down, Batch(x[None], y[None]), {}, {})
        return sum((t.square().sum() for t in up.values()), x.new_zeros(()))

    many = torch.stack([x, x + 0.1])
    slopes = torch.func.vmap(torch.func.grad(size))(many)
    for each, slope in zip(many, slopes, strict=True):
        torch.testing.assert_close(slope, torch.func.grad(size)(each))
        assert slope.norm() > 0
