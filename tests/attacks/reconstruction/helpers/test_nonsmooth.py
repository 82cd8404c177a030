"""Rounded kinks against the plain functions, and what Inverting Gradients makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.attacks.reconstruction.helpers.adam import cosine, steps
from fedarena.attacks.reconstruction.helpers.matching import opponents
from fedarena.attacks.reconstruction.helpers.nonsmooth import Rounded, has_kinks, pool, relu
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients, between_directions, one_less_cosine
from fedarena.contracts.inference import Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# -- the functions -----------------------------------------------------------------------------------


def test_a_rounded_relu_is_the_formula_and_its_slope_has_no_jump() -> None:
    r, z = torch.tensor(0.5, dtype=torch.float64), torch.linspace(-2, 2, 4000, dtype=torch.float64)
    expected = torch.where(z.abs() < r, (z + r).square() / (4 * r), z.clamp_min(0))
    assert torch.allclose(relu(z, r), expected, atol=1e-12)
    slope = vmap(grad(relu), in_dims=(0, None))(z, r)
    assert slope.diff().abs().max() < 1.01 * (4 / 3999) / (2 * r), "1/(2r) times the distance between neighbours"


@pytest.mark.parametrize(("kernel", "stride"), [(2, None), (3, 2), ((2, 3), (2, 3)), (2, 1)])
def test_rounded_pooling_approaches_max_pooling(kernel: int | tuple[int, int], stride: int | None) -> None:
    z = normal(2, 3, 9, 10)
    plain = F.max_pool2d(z, kernel, stride)
    off = [
        float((pool(z, kernel, stride, radius=lambda t, r=r: torch.tensor(r)) - plain).abs().max())  # type: ignore[misc]
        for r in (1e-1, 1e-2, 1e-6)
    ]
    assert off[0] > off[1] > 0
    assert off[2] < 1e-5
    assert off[0] < 0.1 / 4 * 9, "r/4 a step at most"


LAYERS = (nn.ReLU(), nn.ReLU(inplace=True), nn.MaxPool2d(2), torch.relu, Tensor.relu, F.relu)


@pytest.mark.parametrize("layer", LAYERS, ids=[str(i) for i in range(len(LAYERS))])
def test_every_way_to_call_them_is_rounded_while_entered_and_not_after(layer: nn.Module) -> None:
    z = normal(2, 3, 8, 8)
    plain = layer(z.clone())
    with Rounded(0.5):
        rounded = layer(z.clone())
    assert not torch.equal(rounded, plain)
    assert torch.equal(layer(z.clone()), plain)


def test_other_poolings_are_refused() -> None:
    with Rounded(0.5), pytest.raises(UserError, match="kinks"):
        F.max_pool2d(normal(1, 1, 8, 8), 3, 2, padding=1)


def test_rows_under_vmap_are_those_of_a_loop() -> None:
    z = normal(3, 1, 2, 8, 8)
    net = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))
    with Rounded(0.5):
        together, alone = vmap(net)(z), torch.stack([net(row) for row in z])
    assert torch.allclose(together, alone, atol=1e-6)


# -- distances, decay --------------------------------------------------------------------------------


def test_the_distance_of_directions_is_one_less_the_cosine_to_all_digits() -> None:
    b = {"w": normal(40, 50), "b": normal(50, seed=1)}
    far = {n: t + normal(*t.shape, seed=2) for n, t in b.items()}
    assert between_directions(b)(far).item() == pytest.approx(one_less_cosine(b)(far).item(), rel=1e-4)
    near = {n: 3 * (t + 1e-5 * normal(*t.shape, seed=3)) for n, t in b.items()}
    double = one_less_cosine({n: t.double() for n, t in b.items()})({n: t.double() for n, t in near.items()})
    assert between_directions(b)(near).item() == pytest.approx(double.item(), rel=1e-2)


def test_learning_rates_fall() -> None:
    assert [steps(i, 8) for i in (3, 4, 6, 8)] == pytest.approx([1, 0.1, 0.01, 0.001])
    assert [cosine(i, 8) for i in (0, 4, 8)] == pytest.approx([1, 0.5005, 0.001])


def test_grey_has_no_opponents() -> None:
    assert opponents(normal(2, 1, 4, 4).expand(2, 3, 4, 4)).abs().max() == 0
    x = normal(1, 3, 4, 4)
    assert torch.equal(opponents(x)[:, 2], x[:, 2] - x[:, 0])


# -- the attack --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gradient:
    """FedSGD's upload of a small network."""

    net: nn.Sequential

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        def loss(params: Tensors) -> Tensor:
            return -(functional_call(self.net, params, (x,)).log_softmax(-1) * y).sum(-1).mean()

        found: Tensors = grad(loss)({n: p.detach() for n, p in self.net.named_parameters()})
        return found


def observed(smooth: bool = False) -> tuple[View, Tensor]:
    """An upload and the image behind it: of three layers with sharp kinks, or of two smooth ones."""
    g = torch.Generator().manual_seed(5)
    if smooth:
        net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.Sigmoid(), nn.AvgPool2d(2))
        net.extend([nn.Conv2d(12, 12, 3, padding=1), nn.Sigmoid(), nn.Flatten(), nn.Linear(192, 4)])
    else:
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        net.extend([nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 40), nn.ReLU(), nn.Linear(40, 4)])
    for p in net.parameters():
        p.data = (2 * torch.rand(p.shape, generator=g) - 1) / (2 if smooth else p[0].numel() ** 0.5)
    coarse = torch.rand(1, 3, 3, 3, generator=g)
    x = F.interpolate(coarse, size=8, mode="bilinear", align_corners=True)
    y = torch.tensor([2])
    exact = Gradient(net)
    seen = Observation(0, clients=(0,), images=1, target=exact(x, F.one_hot(y, 4).float()), simulate=exact, labels=y)
    return View(
        Threat("server", "adaptive"), reading="upload", input_shape=(3, 8, 8), n_classes=4, observations=(seen,)
    ), x


USUAL = Options(iterations=300, tv=1e-4, labels="given", decay="cosine")


def guess(view: View, options: Options) -> Reconstruction:
    (found,) = InvertingGradients(options).run(view, Rng(0), lambda share, text: None)  # type: ignore[misc]
    assert isinstance(found, Reconstruction)
    return found


def test_rounded_kinks_come_nearer_and_the_match_is_the_exact_network_s() -> None:
    view, x = observed()
    plain, rounded = guess(view, USUAL), guess(view, replace(USUAL, kinks=0.3))
    assert (rounded.images - x).norm() < 0.7 * (plain.images - x).norm()
    assert rounded.match < 0.3 * plain.match
    (seen,) = view.observations
    y = F.one_hot(torch.tensor([2]), 4).float()
    off = one_less_cosine(seen.target)(seen.simulate(rounded.images, y))
    assert rounded.match >= off.item()
    assert rounded.evaluations == plain.evaluations + 1


def test_polish_settles_what_steps_along_signs_do_not() -> None:
    view, x = observed(smooth=True)
    plain, polished = guess(view, USUAL), guess(view, replace(USUAL, polish=600))
    assert (polished.images - x).norm() < 0.3 * (plain.images - x).norm()
    assert polished.evaluations > plain.evaluations


@pytest.mark.parametrize("other", [{"colours": True}, {"decay": "steps"}, {"kinks": 0.1}, {"polish": 3}])
def test_every_option_acts(other: dict[str, bool | str | float]) -> None:
    view, _ = observed()
    short = replace(USUAL, iterations=16)
    assert not torch.equal(guess(view, short).images, guess(view, replace(short, **other)).images)  # type: ignore[arg-type]


def test_two_colours_are_refused() -> None:
    attack = InvertingGradients(replace(USUAL, colours=True))
    for shape in ((1, 8, 8), (2, 8, 8), (12,)):
        with pytest.raises(UserError, match="colours"):
            attack.fit(task(nn.Linear(4, 4), shape))
    attack.fit(task(nn.Linear(4, 4), (3, 8, 8)))


def task(net: nn.Module, shape: tuple[int, ...] = (3, 8, 8)) -> Task:
    """Public facts of a federation that trains this network."""
    return Task(net, input_shape=shape, n_classes=4, sizes=(4,), schedule=Schedule())


def test_what_has_no_kinks_cannot_be_rounded_off() -> None:
    attack = InvertingGradients(replace(USUAL, kinks=0.5))
    smooth = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(18, 4))
    with pytest.raises(UserError, match=r"option 'kinks' is 0\.5, allowed: 0 for a model without ReLU and max pooling"):
        attack.fit(task(smooth))
    InvertingGradients(USUAL).fit(task(smooth))
    with pytest.raises(UserError, match=r"option 'kinks' rounds off max pooling without padding .* allowed: 0$"):
        attack.fit(task(nn.Sequential(nn.MaxPool2d(3, padding=1), nn.Flatten(), nn.Linear(27, 4))))
    for layer in (nn.ReLU(), nn.MaxPool2d(1)):
        attack.fit(task(nn.Sequential(layer, nn.Flatten(), nn.Linear(192, 4))))


def test_looking_for_kinks_leaves_the_model_as_it_is() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(192, 4))
    before, state = {n: t.clone() for n, t in net.state_dict().items()}, torch.random.get_rng_state()
    assert has_kinks(task(net), 0.5)
    assert net.training
    assert all(torch.equal(t, before[n]) for n, t in net.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_kinks_are_refused_where_uploads_are_simulated_without_them() -> None:
    view, _ = observed(smooth=True)
    with pytest.raises(UserError, match=r"option 'kinks' is 0\.5, allowed: 0 where uploads are simulated without ReLU"):
        guess(view, replace(USUAL, iterations=4, kinks=0.5))
