"""The judge against slow, independent formulas."""

import itertools
import math
from dataclasses import dataclass, replace

import pytest
import torch
from helpers.victims import victims
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.contracts.inference import Reconstruction
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import declare_operators
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics import reconstruction as judge
from fedarena.goals.metrics.real_samples import nearest_others

ENDS = {f"{name}_{end}" for name in ("identified", "recovered", "label_accuracy") for end in ("low", "high")}
KEYS = {"identified", "mse", "psnr", "ssim", "label_accuracy", "recovered"}
BESIDE = {"identified_chance", "decoys", "decoys_same_class", "images", "match"}
PRIOR_KEYS = {f"prior_{p}_{k}" for p in ("mean", "nearest") for k in ("mse", "psnr", "ssim", "recovered")}
PRIOR_KEYS |= {"prior_mean_identified"}


@dataclass(frozen=True)
class Stored:
    x: Tensor
    scale: float
    y: Tensor | None = None


def rand(seed: int, *shape: int) -> Tensor:
    return torch.rand(shape, generator=Rng(seed).torch())


def guess(x: Tensor, y: Tensor | None = None) -> Reconstruction:
    return Reconstruction(x, torch.zeros(len(x), dtype=torch.int64) if y is None else y, 0.0, 1)


def slow_ssim(a: Tensor, b: Tensor) -> float:
    """Pixel by pixel: 7×7 windows around every pixel, mirrored at the border without repeating it, biased moments."""

    def mirror(i: int, n: int) -> int:
        return -i if i < 0 else 2 * (n - 1) - i if i >= n else i

    channels, height, width = a.shape
    total = 0.0
    for c, i, j in itertools.product(range(channels), range(height), range(width)):
        window = [(mirror(i + u, height), mirror(j + v, width)) for u in range(-3, 4) for v in range(-3, 4)]
        p, q = ([float(t[c, r, s]) for r, s in window] for t in (a, b))
        mp, mq = sum(p) / 49, sum(q) / 49
        vp, vq = sum((v - mp) ** 2 for v in p) / 49, sum((v - mq) ** 2 for v in q) / 49
        cov = sum((v - mp) * (w - mq) for v, w in zip(p, q, strict=True)) / 49
        total += (2 * mp * mq + 1e-4) * (2 * cov + 9e-4) / ((mp**2 + mq**2 + 1e-4) * (vp + vq + 9e-4))
    return total / (channels * height * width)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 7)])
def test_ssim_equals_the_slow_formula(shape: tuple[int, ...]) -> None:
    a, b = rand(0, 2, *shape).double(), rand(1, 2, *shape).double()
    near = (a + 0.1 * b).clamp(0, 1)
    for left, right in ((a, b), (a, near), (a, a)):
        fast = images.ssim(left, right)
        assert fast.tolist() == pytest.approx([slow_ssim(x, y) for x, y in zip(left, right, strict=True)], abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 9, 7)])
def test_ssim_is_that_of_torchmetrics_to_the_last_bit(shape: tuple[int, ...]) -> None:
    declare_operators()
    from torchmetrics.functional.image import structural_similarity_index_measure as theirs

    a, b = rand(0, 5, *shape), rand(1, 5, *shape)
    for left, right in ((a, b), (a, (a + 0.1 * b).clamp(0, 1)), (a, a), (a, torch.zeros_like(a))):
        options = {"gaussian_kernel": False, "kernel_size": 7, "data_range": 1.0, "reduction": "none"}
        assert torch.equal(images.ssim(left, right), theirs(left.double(), right.double(), **options))


def test_ssim_refuses_what_is_no_image() -> None:
    with pytest.raises(UserError, match=r"input shape is \(64,\)"):
        images.ssim(torch.zeros(2, 64), torch.zeros(2, 64))
    with pytest.raises(UserError, match="7 or more"):
        images.ssim(torch.zeros(2, 1, 8, 6), torch.zeros(2, 1, 8, 6))


@given(seed=st.integers(0, 2**32), n=st.integers(1, 4), noise=st.floats(0, 0.5))
@settings(max_examples=25, deadline=None)
def test_psnr_is_capped_and_follows_mse(seed: int, n: int, noise: float) -> None:
    a = rand(seed, n, 1, 8, 8)
    b = a + noise * rand(seed + 1, n, 1, 8, 8)
    for one, error in zip(images.psnr(a, b).tolist(), images.mse(a, b).tolist(), strict=True):
        assert one <= 100.0
        assert one == pytest.approx(100.0 if error <= 1e-10 else -10 * math.log10(error))


def test_the_assignment_has_the_least_total_error() -> None:
    a, b = rand(2, 5, 1, 8, 8), rand(3, 5, 1, 8, 8)

    def error(order: tuple[int, ...]) -> float:
        return float(images.mse(b[list(order)], a).sum())

    best = min(itertools.permutations(range(5)), key=error)
    assert tuple(judge.assign(b, a).tolist()) == best


def test_a_perfect_guess_in_another_order_scores_full_marks() -> None:
    x, y = rand(4, 4, 1, 8, 8), torch.tensor([3, 1, 4, 1])
    order = torch.tensor([2, 0, 3, 1])
    metrics = judge.reconstruction_metrics([guess(x[order], y[order])], victims([(x, y)]))
    assert set(metrics) == KEYS | ENDS | BESIDE | {"recovered_above"}
    for name in ("recovered", "identified"):
        assert (metrics[f"{name}_low"], metrics[f"{name}_high"]) == (pytest.approx(0.025**0.25), 1)
    assert set(judge.prior_metrics(victims([(x, y)]), Stored(x, 1.0))) == PRIOR_KEYS
    perfect = {"identified": 1, "mse": 0, "psnr": 100, "ssim": 1, "label_accuracy": 1, "recovered": 1}
    assert {k: metrics[k] for k in perfect} == perfect
    assert metrics["images"] == 4
    assert torch.equal(judge.matched(x[order], x), x)


def test_guesses_that_are_left_over_do_not_count() -> None:
    x, y = rand(4, 3, 1, 8, 8), torch.tensor([3, 1, 4])
    order = torch.tensor([2, 0, 1])
    metrics = judge.reconstruction_metrics([guess(x[order], y[order])], victims([(x[:2], y[:2])]), [3])
    assert (metrics["images"], metrics["recovered"], metrics["label_accuracy"]) == (2, 1, 1)
    none = judge.reconstruction_metrics([guess(x, y)] * 2, victims([(x[:0], y[:0]), (x, y)]), [3, 3])
    assert (none["images"], none["recovered"]) == (3, 1)


def test_surplus_samples_of_a_random_batch_do_not_count() -> None:
    """A client that draws its samples by chance may hold more than the protocol says; nobody could have named them."""
    x, y = rand(4, 4, 1, 8, 8), torch.tensor([3, 1, 4, 1])
    metrics = judge.reconstruction_metrics([guess(x[[1, 0]], y[[1, 0]])], victims([(x, y)]), [2])
    assert (metrics["images"], metrics["identified"], metrics["label_accuracy"]) == (2, 1, 1)
    assert torch.equal(judge.matched(x[:2], x)[2:], torch.full_like(x[2:], 0.5))


def test_a_guess_that_is_nearer_to_another_sample_identifies_nobody() -> None:
    x, y = rand(4, 2, 1, 8, 8), torch.tensor([3, 1])
    others = rand(5, 20, 1, 8, 8)
    near = torch.stack([0.6 * x[0] + 0.4 * others[7], 0.4 * x[1] + 0.6 * others[7]])
    metrics = judge.reconstruction_metrics([guess(near)], victims([(x, y)], others))
    assert metrics["identified"] == 0.5
    assert metrics["identified_chance"] == pytest.approx(1 / 21)
    assert metrics["decoys"] == 20


def test_metrics_are_means_over_the_images_of_all_observations() -> None:
    x, y = rand(6, 3, 1, 8, 8), torch.tensor([0, 1, 2])
    wrong = 1 - x[2:]
    two = [guess(x[:2], torch.tensor([0, 5])), guess(wrong, torch.tensor([2]))]
    metrics = judge.reconstruction_metrics(two, victims([(x[:2], y[:2]), (x[2:], y[2:])]))
    assert metrics["recovered"] == pytest.approx(2 / 3)
    assert metrics["label_accuracy"] == pytest.approx(2 / 3)
    assert metrics["mse"] == pytest.approx(float((1 - 2 * x[2]).square().mean()) / 3, rel=1e-6)
    assert "blind" not in metrics
    told = judge.reconstruction_metrics([two[0], replace(two[1], blind=1)], victims([(x[:2], y[:2]), (x[2:], y[2:])]))
    assert told == {**metrics, "blind": pytest.approx(1 / 3)}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_pixels_that_are_not_finite_are_grey_and_count(bad: float) -> None:
    x, y = rand(7, 2, 1, 8, 8), torch.tensor([0, 0])
    broken = x.clone()
    broken[0] = bad
    metrics = judge.reconstruction_metrics([guess(broken)], victims([(x, y)]))
    assert metrics["mse"] == pytest.approx(float((x[0] - 0.5).square().mean()) / 2, rel=1e-6)
    assert metrics["recovered"] == 0.5
    assert all(math.isfinite(v) for v in metrics.values())


def test_guesses_are_clipped() -> None:
    x = torch.zeros(1, 1, 8, 8)
    assert torch.equal(judge.matched(x - 3, x), x)


def test_priors_know_the_data_but_not_the_victim() -> None:
    stored = (rand(9, 40, 1, 8, 8) * 16).round()
    pool = Stored(stored, 16.0)
    x, y = stored[7:9] / 16, torch.tensor([0, 0])
    metrics = judge.reconstruction_metrics([guess(x)], victims([(x, y)])) | judge.prior_metrics(victims([(x, y)]), pool)
    mean = stored.mean(0) / 16
    assert metrics["prior_mean_mse"] == pytest.approx(float((x - mean).square().mean()), rel=1e-5)
    nearest = nearest_others(x, pool)[0]
    for i, victim in enumerate((7, 8)):
        errors = [math.inf if k == victim else float((stored[k] / 16 - x[i]).square().sum()) for k in range(40)]
        assert torch.equal(nearest[i], stored[errors.index(min(errors))].double() / 16)
    assert metrics["prior_nearest_recovered"] == 0


def test_the_nearest_prior_leaves_out_copies_of_the_victim_at_any_scale() -> None:
    stored = (rand(10, 12, 1, 8, 8) * 255).round().to(torch.uint8)
    stored[5] = stored[3]
    near = stored[3].clone()
    near[0, 0, 0] = near[0, 0, 0] // 2 + 1
    stored[11] = near
    original = stored[3:4].float() / 255
    assert torch.equal(nearest_others(original, Stored(stored, 255.0))[0][0], near.double() / 255)


def test_a_missing_reconstruction_is_an_error() -> None:
    x, y = rand(11, 2, 1, 8, 8), torch.tensor([0, 0])
    with pytest.raises(ValueError, match="1 reconstructions for 2"):
        judge.reconstruction_metrics([guess(x)], victims([(x, y), (x, y)]))
    with pytest.raises(ValueError, match="1 images and 1 labels for 2 samples"):
        judge.reconstruction_metrics([guess(x[:1])], victims([(x, y)]))


def test_estimates() -> None:
    truth = {"a": torch.tensor([3.0, 0.0]), "b": torch.tensor([[4.0]])}
    assert judge.estimate_metrics(truth, truth) == pytest.approx({"cosine": 1.0, "relative_l2": 0.0})
    turned = {"b": torch.tensor([[0.0]]), "a": torch.tensor([3.0, 4.0])}
    assert judge.estimate_metrics(turned, truth) == pytest.approx({"cosine": 9 / 25, "relative_l2": math.sqrt(32) / 5})
    nothing = {name: torch.zeros_like(t) for name, t in truth.items()}
    assert judge.estimate_metrics(nothing, truth) == {"cosine": 0.0, "relative_l2": 1.0}
    broken = {name: torch.full_like(t, math.nan) for name, t in truth.items()}
    assert judge.estimate_metrics(broken, truth) == {"cosine": 0.0, "relative_l2": 1.0}
    with pytest.raises(ValueError, match="names"):
        judge.estimate_metrics({"a": truth["a"]}, truth)


# -- rows of a table, and labels that are numbers -------------------------------------------------------


def numbers(x: Tensor, y: Tensor) -> Reconstruction:
    return Reconstruction(x, y, 0.0, 1)


def test_a_row_is_recovered_from_30_db_on() -> None:
    truth = torch.full((3, 4), 0.5)
    off = torch.tensor([0.0, 0.999e-3**0.5, 1.001e-3**0.5])[:, None]
    found = judge.reconstruction_metrics([guess(truth[i : i + 1] + off[i]) for i in range(3)], victims(rows(truth, 3)))
    assert found["recovered"] == pytest.approx(2 / 3)
    assert found["mse"] == pytest.approx(2e-3 / 3, rel=1e-4)
    assert set(found) == {*(KEYS - {"ssim"}), *ENDS, *BESIDE, "recovered_below"}


def rows(truth: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
    return [(truth[i : i + 1], torch.zeros(1, dtype=torch.int64)) for i in range(n)]


def test_numbers_are_judged_by_their_mean_absolute_error() -> None:
    x, y = rand(0, 4, 6), torch.tensor([0.1, 0.4, 0.9, 1.0])
    turned = torch.tensor([2, 0, 3, 1])
    told = torch.tensor([0.1, 0.5, 0.7, 4.0])  # beyond the range: clipped to 1
    found = judge.reconstruction_metrics([numbers(x[turned], told[turned])], victims([(x, y)]))
    assert found["label_error"] == pytest.approx((0.1 + 0.2) / 4)
    assert "label_accuracy" not in found
    broken = judge.reconstruction_metrics([numbers(x, torch.full((4,), torch.nan))], victims([(x, y)]))
    assert broken["label_error"] == pytest.approx((0.4 + 0.1 + 0.4 + 0.5) / 4)


def test_the_prior_of_numbers_is_the_training_median() -> None:
    x, y = rand(0, 2, 6), torch.tensor([0.25, 0.75])
    pool = Stored(rand(1, 5, 6), 1.0, torch.tensor([0.0, 0.0, 0.5, 0.9, 1.0]))
    found = judge.prior_metrics(victims([(x, y)]), pool)
    assert found["prior_label_error"] == pytest.approx(0.25)
    assert set(found) == {k for k in PRIOR_KEYS if not k.endswith("ssim")} | {"prior_label_error"}
    assert found["prior_mean_mse"] == pytest.approx(float((pool.x.mean(0) - x).square().mean()), rel=1e-5)
