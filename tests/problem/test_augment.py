"""Random changes of images against torchvision's functions, and in a federation."""

from __future__ import annotations

import pytest
import torch

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import import_torchvision
from fedarena.problem.augment import PADDING, augmented, check_augment, coloured, cropped
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import usual_problem


def images(n: int = 6, channels: int = 3) -> torch.Tensor:
    return torch.rand(n, channels, 9, 8, generator=Rng(0).torch())


def test_crops_are_torchvisions() -> None:
    import_torchvision()
    from torchvision.transforms.functional import crop, pad

    x, offsets = images(), torch.tensor([[0, 0], [4, 4], [8, 8], [0, 8], [3, 5], [7, 1]])
    for image, (top, left), got in zip(x, offsets.tolist(), cropped(x, offsets), strict=True):
        torch.testing.assert_close(got, crop(pad(image, [PADDING]), top, left, 9, 8), rtol=0, atol=0)
    torch.testing.assert_close(cropped(x, torch.full((6, 2), PADDING)), x, rtol=0, atol=0)


def test_half_of_the_images_are_mirrored() -> None:
    x = images(400)
    got = augmented(x, ("flip",), Rng(1))
    mirrored = torch.tensor([bool((a == b.flip(2)).all()) for a, b in zip(got, x, strict=True)])
    torch.testing.assert_close(torch.where(mirrored[:, None, None, None], got.flip(3), got), x, rtol=0, atol=0)
    assert 0.4 < float(mirrored.double().mean()) < 0.6


def test_colours_stay_in_range_and_are_as_they_were_at_factors_of_one() -> None:
    x = images()
    for image in x:
        torch.testing.assert_close(coloured(image, (1.0, 1.0, 1.0)), image)
    assert float(coloured(x[0], (0.6, 1.0, 1.0)).mean()) == pytest.approx(0.6 * float(x[0].mean()), rel=1e-5)
    got = augmented(x, ("jitter",), Rng(2))
    assert 0 <= float(got.min()) <= float(got.max()) <= 1
    assert not torch.equal(got, x)


def of(**training: str) -> Problem:
    return build(usual_problem({"dataset": "digits", "model": "mlp", "clients": "3"}, {"training": training}), seed=0)


def test_a_client_draws_anew_in_each_round_and_the_same_again() -> None:
    problem, plain = of(augment="crop,flip", batch_size="8"), of(batch_size="8")
    draws = [(c, Rng(0).child("batch", 5, c)) for c in range(3)]
    got, again, without = problem.batches(draws), problem.batches(draws), plain.batches(draws)
    assert all(torch.equal(a.x, b.x) for a, b in zip(got, again, strict=True))
    assert all(torch.equal(a.y, b.y) and a.x.shape == b.x.shape for a, b in zip(got, without, strict=True))
    assert not any(torch.equal(a.x, b.x) for a, b in zip(got, without, strict=True))
    # A client's changes do not depend on who else takes part.
    assert torch.equal(problem.batches(draws[1:2])[0].x, got[1].x)


@pytest.mark.parametrize(
    ("how", "shape", "message"),
    [(("flip",), (13,), "without images: empty"), (("jitter",), (1, 8, 8), "without colours: crop, flip")],
)
def test_what_inputs_cannot_have_is_refused(how: tuple[str, ...], shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_augment(how, shape)
    check_augment((), shape)


def test_top_k_counts_the_class_among_the_largest_outputs() -> None:
    problem = of()
    params = problem.init
    order = problem.predictions(params).argsort(1, descending=True)
    place = (order == problem.y_test[:, None]).double().argmax(1)
    for k in (1, 3, 10):
        assert problem.top(params, k) == pytest.approx(float((place < k).double().mean()))
    assert problem.top(params, 1) == pytest.approx(problem.evaluate(params)[0])
