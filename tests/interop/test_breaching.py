"""breaching's attacks on gradients that plain PyTorch computed, and on views of runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import fedarena as fa
from fedarena.contracts.inference import Reconstruction
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import declare_operators
from fedarena.federation import compose
from fedarena.federation.foreign_gradient import view_of
from fedarena.interop import breaching

declare_operators()
pytest.importorskip("breaching", reason="breaching is not installed: pip install 'fedarena[breaching]'")

SHAPE = (3, 16, 16)
STEPS = "optim.max_iterations"


def convolutional() -> nn.Module:
    parts = (nn.Conv2d(3, 12, 5, 2, 2), nn.BatchNorm2d(12), nn.Sigmoid(), nn.Flatten(), nn.Linear(768, 10))
    model = nn.Sequential(*parts)
    with torch.no_grad():
        model(torch.rand(64, *SHAPE))  # its running statistics are not those of a new one
    return model.eval()


def dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.ReLU(), nn.Linear(32, 10))


def gradient_of(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters())))


def guess_at(model: nn.Module, x: Tensor, y: Tensor, **options: Any) -> Reconstruction:
    return breaching.invert(
        model, gradient_of(model, x, y), input_shape=SHAPE, n_classes=10, **{"images": len(x), **options}
    )


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("make", "attack", "options", "largest"),
    [
        (convolutional, "deepleakage", {STEPS: 40}, 1e-3),
        (convolutional, "invertinggradients", {STEPS: 600, "regularization.total_variation.scale": 0.0}, 5e-3),
        (dense, "analytic", {}, 1e-6),
    ],
)
def test_an_image_comes_back(make: Any, attack: str, options: dict[str, Any], largest: float) -> None:
    model, x, y = make(), torch.rand(1, *SHAPE), torch.tensor([3])
    found = guess_at(model, x, y, attack=attack, **options)
    assert float((found.images - x).square().mean()) < largest
    assert found.images.shape == x.shape
    if attack != "deepleakage":  # which returns the labels of its start
        assert found.labels.tolist() == [3]


def test_the_distance_is_the_cosine_of_plain_pytorch() -> None:
    model, x, y = convolutional(), torch.rand(2, *SHAPE), torch.tensor([3, 7])
    found = guess_at(model, x, y, labels=y, **{STEPS: 30})
    there, here = (torch.cat([g.flatten() for g in gradient_of(model, at, y)]) for at in (x, found.images))
    assert found.match == pytest.approx(float(1 - torch.cosine_similarity(there, here, dim=0)), abs=1e-5)
    assert found.evaluations == 31  # a step each, and the score of the answer


def test_a_guess_follows_its_seed_and_leaves_the_generators() -> None:
    model, x, y = convolutional(), torch.rand(1, *SHAPE), torch.tensor([3])
    before = torch.random.get_rng_state()
    one, again, other = (guess_at(model, x, y, seed=seed, **{STEPS: 5}).images for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_neither_the_model_nor_the_gradient_is_changed() -> None:
    model, x, y = convolutional(), torch.rand(1, *SHAPE), torch.tensor([3])
    gradient = gradient_of(model, x, y)
    state, copies = [t.clone() for t in model.state_dict().values()], [g.clone() for g in gradient]
    options: dict[str, Any] = {STEPS: 5, "normalize_gradients": True}
    breaching.invert(model, gradient, input_shape=SHAPE, n_classes=10, **options)
    assert all(map(torch.equal, gradient, copies))
    assert all(map(torch.equal, model.state_dict().values(), state))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attack": "inverting"}, "has no attack 'inverting'; did you mean invertinggradients"),
        ({"attack": "imprint"}, "is of the type imprint-readout, allowed: optimization"),
        ({"optim.steps": 3}, "invertinggradients: Could not override 'optim.steps'"),
        ({STEPS: "many"}, "invertinggradients fails"),
        ({"attack": "deepleakage", "labels": [3]}, "Joint optimization only makes sense if no labels"),
        ({"labels": [3, 4]}, r"labels have the shape \[2\], allowed: \[1\]"),
    ],
)
def test_what_it_cannot_do_is_said_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        guess_at(convolutional(), torch.rand(1, *SHAPE), torch.tensor([3]), **options)
    assert "\n" not in str(raised.value)


def test_a_total_variation_of_grey_images_is_refused() -> None:
    model, x, y = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), torch.rand(1, 1, 8, 8), torch.tensor([3])
    with pytest.raises(UserError, match=r"three colours, and inputs have the shape \[1, 8, 8\]"):
        breaching.invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10)


def test_labels_are_read_off_a_bias_alone() -> None:
    model, x, y = nn.Sequential(nn.Flatten(), nn.Linear(768, 10, bias=False)), torch.rand(1, *SHAPE), torch.tensor([3])
    with pytest.raises(UserError, match="no bias of the output layer"):
        guess_at(model, x, y, **{STEPS: 2})
    assert guess_at(model, x, y, labels=y, **{STEPS: 2}).labels.tolist() == [3]


def test_a_run_takes_an_attack_of_breaching() -> None:
    attack = breaching.as_attack("deepleakage", **{STEPS: 40})
    options: dict[str, Any] = {"dataset": "digits", "model": "lenet-dlg", "rounds": 2, "party": "server"}
    records = list(fa.run("dbcl", attack, **options))
    assert {record["options"]["attack"]["settings"] for record in records} == {"optim.max_iterations=40"}
    assert {record["origins"]["breaching-deepleakage"] for record in records} == {"this session"}
    found = {(record["defense"], record["form"]): record for record in records}
    protected = found["dbcl", "adaptive"]
    assert protected["status"] == "n/a"
    assert "gradient of the plain model's mean loss" in protected["reason"]
    assert found["dbcl", "paper"]["status"] == "ok"


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_the_images_of_fedavg_come_back_in_a_run(form: str) -> None:
    attack = breaching.as_attack("deepleakage", **{STEPS: 40})
    options: dict[str, Any] = {"dataset": "digits", "model": "lenet-dlg", "rounds": 2, "party": "server", "form": form}
    (record,) = fa.run("fedavg", attack, **options)
    assert record["status"] == "ok"
    assert record["metrics"]["mse"] < 1e-3


def test_settings_of_a_run_reach_breaching() -> None:
    words = {STEPS: 3, "optim.signed": "soft", "regularization.total_variation.scale": 0.0, "init": "zeros"}
    options: dict[str, Any] = {"dataset": "digits", "model": "lenet-dlg", "rounds": 2, "party": "server"}
    (record,) = fa.run("fedavg", breaching.as_attack(**words), form="paper", **options)
    again = fa.run("fedavg", breaching.as_attack(), form="paper", **options, **{"attack.settings": settings_of(record)})
    assert record["metrics"] == again[0]["metrics"]
    assert record["key"] == again[0]["key"]
    assert 'optim.signed="soft" ' in settings_of(record)


def settings_of(record: Any) -> str:
    return str(record["options"]["attack"]["settings"])


def test_our_imprint_reads_the_block_of_breaching() -> None:
    from breaching.cases.malicious_modifications import ImprintBlock

    block = ImprintBlock(SHAPE, 64, gain=1.0, linfunc="avg")
    model = nn.Sequential(block, nn.Flatten(), nn.Linear(768, 10)).eval()
    x, y = torch.rand(4, *SHAPE) * torch.tensor([0.1, 0.4, 0.7, 1.0])[:, None, None, None], torch.arange(4)
    view = view_of(model, gradient_of(model, x, y), input_shape=SHAPE, n_classes=10, images=4)
    (guess,) = compose.make_inference(compose.parse_attack("imprint"))(view, Rng(0))  # type: ignore[misc]
    order = guess.images.mean((1, 2, 3)).argsort()
    torch.testing.assert_close(guess.images[order], x, atol=1e-3, rtol=0)
