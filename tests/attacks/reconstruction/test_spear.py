"""Whole batches read off a dense first layer with ReLUs: exactly, and no worse than without where they cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.linalg
import torch
import torch.nn.functional as F
from helpers.dense_views import make_view
from helpers.victims import victims
from torch import Tensor

from fedarena.attacks.reconstruction import spear
from fedarena.attacks.reconstruction.analytic import Analytic
from fedarena.attacks.reconstruction.cards.analytic import Options as AnalyticOptions
from fedarena.attacks.reconstruction.cards.spear import CARD, Options
from fedarena.attacks.reconstruction.helpers.first_layer import first_layer
from fedarena.attacks.reconstruction.spear import (
    Spear,
    directions,
    disaggregated,
    drawn_units,
    factors,
    independent,
    least,
    subspaces,
)
from fedarena.contracts.inference import Guess
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.goals.metrics import reconstruction as judge
from fedarena.problem.schedule import Schedule


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def guess(view: View, options: Options = Options()) -> Guess:  # noqa: B008  (frozen)
    guess = Spear(options)(replace(view, population=None), Rng(0))
    assert not isinstance(guess, NotApplicable), guess.reason
    return guess


def score(guess: Guess, truths: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    return judge.reconstruction_metrics(guess, victims(truths))


def analytic(view: View) -> Guess:
    guess = Analytic(AnalyticOptions())(replace(view, population=None), Rng(0))
    assert not isinstance(guess, NotApplicable), guess.reason
    return guess


@pytest.mark.parametrize(("batch", "widths"), [(2, "64"), (4, "64"), (4, "200"), (8, "200")])
def test_every_sample_of_a_batch_comes_back_exactly(batch: int, widths: str) -> None:
    view, truths = make_view(batch=batch, victims=4, widths=widths)
    metrics = score(guess(view), truths)
    assert metrics["psnr"] > 95
    assert metrics["recovered"] == 1
    assert metrics["label_accuracy"] == 1


def test_it_tells_apart_what_single_units_do_not_show() -> None:
    view, truths = make_view(batch=8, victims=4, widths="100")
    assert score(analytic(view), truths)["recovered"] < 0.9 < score(guess(view), truths)["recovered"]


def test_several_steps_on_a_whole_batch_change_nothing() -> None:
    view, truths = make_view(batch=4, victims=4, widths="200", schedule=Schedule(batch_size=4, local_epochs=5, lr=0.1))
    assert score(guess(view), truths)["psnr"] > 60


def test_a_sigmoid_leaves_no_unit_inactive_and_nothing_to_find() -> None:
    view, _ = make_view(batch=4, victims=2, activation="sigmoid", widths="64")
    ours, theirs = guess(view, Options(draws=4000)), analytic(view)
    assert all(torch.equal(a.images, b.images) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("batch", [6, 12])
def test_it_never_explains_less_than_single_units_do(batch: int) -> None:
    view, _ = make_view(batch=batch, victims=4, widths="64")
    ours, theirs = guess(view, Options(draws=3000)), analytic(view)
    assert all(a.match <= b.match for a, b in zip(ours, theirs, strict=True))


def test_more_draws_find_more() -> None:
    view, truths = make_view(batch=8, victims=4, widths="200")
    few, many = (score(guess(view, Options(draws=n)), truths)["recovered"] for n in (20, 20_000))
    assert few < many == 1


def test_larger_batches_than_allowed_are_left_to_single_units() -> None:
    view, _ = make_view(batch=4, victims=3, widths="64")
    ours, theirs = guess(view, Options(max_batch=3)), analytic(view)
    assert all(torch.equal(a.images, b.images) for a, b in zip(ours, theirs, strict=True))


def test_similar_samples_of_one_class_are_told_apart() -> None:
    """They leave the same units inactive, but for a few."""
    g = Rng(0).torch()
    _, m = made(100, 2, 0)
    d = torch.randn(100, 1, generator=g).double() * (1 + 0.1 * torch.rand(100, 2, generator=g))
    d[:4, 0] = d[4:8, 1] = 0.0
    found = disaggregated(factors(d @ m, 2, 0.0), [], Options(draws=2000), lambda _: False, Rng(0).torch())
    assert near(found, m) < 1e-6


# -- the pieces --------------------------------------------------------------------------------------


def made(units: int, n: int, seed: int, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    """A gradient D M [units, 21] with half of D zeros, and M [n, 21], whose last column is 1."""
    g = Rng(seed).torch()
    d = torch.randn(units, n, generator=g).double() * (torch.rand(units, n, generator=g) < 0.5)
    m = torch.cat([torch.rand(n, 20, generator=g).double(), torch.ones(n, 1)], 1)
    return d @ m + noise * torch.randn(units, 21, generator=g).double(), m


def near(found: Tensor | None, m: Tensor) -> float:
    """The largest distance of a row of M from the nearest that was found."""
    assert found is not None
    return float(torch.cdist(m, found).min(1).values.max())


@pytest.mark.parametrize("seed", range(5))
def test_the_factors_of_a_sparse_product_are_told(seed: int) -> None:
    rows, m = made(60, 5, seed)
    found = disaggregated(factors(rows, 5, 0.0), [], Options(draws=5000), lambda _: False, Rng(seed).torch())
    assert near(found, m) < 1e-6


def test_known_rows_make_the_others_easier_to_find() -> None:
    rows, m = made(100, 14, 0)
    o = Options(draws=20_000)
    alone = disaggregated(factors(rows, 14, 0.0), [], o, lambda _: False, Rng(0).torch())
    strict = replace(o, sparsity=0.95)
    refused = disaggregated(factors(rows, 14, 0.0), list(3.0 * m[:9]), strict, lambda _: False, Rng(0).torch())
    assert refused is None or near(refused, m) > 0.01, "no sample leaves so many units inactive"
    helped = disaggregated(factors(rows, 14, 0.0), list(3.0 * m[:9]), o, lambda _: False, Rng(0).torch())
    assert alone is None or near(alone, m) > 0.01
    assert near(helped, m) < 1e-6


def test_little_noise_is_withstood_and_much_is_not_taken_for_samples() -> None:
    rows, m = made(200, 4, 0, noise=1e-4)
    found = disaggregated(factors(rows, 4, 1e-4), [], Options(draws=20_000), lambda _: False, Rng(0).torch())
    assert near(found, m) < 0.01
    rows, _ = made(200, 4, 0, noise=3.0)
    assert disaggregated(factors(rows, 4, 3.0), [], Options(draws=5000), lambda _: False, Rng(0).torch()) is None


def test_it_stops_as_soon_as_the_samples_are_surely_right(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, m = made(60, 4, 0)
    turns: list[int] = []
    kept = spear.directions
    monkeypatch.setattr(spear, "directions", lambda *args: (turns.append(args[2]), kept(*args))[1])
    disaggregated(factors(rows, 4, 0.0), [], Options(draws=50_000), lambda x: near(x, m) < 1e-6, Rng(0).torch())
    assert sum(turns) < 10_000


def test_a_kernel_is_that_of_scipy() -> None:
    rows = torch.randn(4, 5, generator=Rng(0).torch()).double()
    ours, theirs = least(rows), torch.from_numpy(scipy.linalg.null_space(rows.numpy())[:, 0])
    assert abs(float(ours @ theirs)) == pytest.approx(1)


def test_a_subspace_is_orthogonal_to_all_known_rows_but_one() -> None:
    known = torch.randn(3, 6, generator=Rng(0).torch()).double()
    for j, basis in enumerate(subspaces(known)):
        assert basis.shape == (6, 4)
        assert torch.allclose(basis.T @ basis, torch.eye(4).double())
        lengths = (known @ basis).norm(dim=1)
        assert [float(length) > 0.1 for length in lengths] == [i == j for i in range(3)]


def test_directions_within_the_span_of_others_are_left_out() -> None:
    e = torch.eye(3).double()
    assert independent(torch.stack([e[0], e[1], (e[0] + e[1]) / 2**0.5, e[2]])) == [0, 1, 3]


def test_units_that_are_inactive_for_all_samples_say_nothing() -> None:
    rows, _ = made(20, 3, 0)
    assert len(factors(torch.cat([rows, torch.zeros(7, 21)]), 3, 0.0).left) == int((rows.norm(dim=1) > 0).sum())


def test_the_card_names_this_attack_and_its_watch_names_it_in_errors() -> None:
    assert CARD.load() is Spear
    with pytest.raises(UserError, match="attack spear: option 'start' is 20"):
        Spear(Options(start=20)).watch(Schedule(rounds=20))


def test_draws_take_short_rows_first_and_leave_out_none() -> None:
    lengths = torch.rand(60, generator=Rng(0).torch()).double()
    which = drawn_units(lengths, 4000, 5, Rng(1).torch())
    assert which.shape == (4000, 5)
    assert all(len(set(units)) == 5 for units in which.tolist())
    counts = which.flatten().bincount(minlength=60)[lengths.argsort()]
    assert int(counts.min()) > 0
    assert float(counts[:10].sum()) > 2 * float(counts[10:20].sum()) > 4 * float(counts[-10:].sum())


def test_short_rows_find_directions_that_draws_from_all_units_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of digits, whose rows are short where few samples activate a unit: it is 0 for more of them."""

    def of_all(lengths: Tensor, draws: int, count: int, rng: torch.Generator) -> Tensor:
        return torch.rand(draws, len(lengths), generator=rng).topk(count, dim=1).indices

    view, truths = make_view(batch=12, victims=1, widths="200")
    target, x = view.observations[0].target, truths[0][0].flatten(1).double()
    layer = first_layer(target)
    assert not isinstance(layer, str)
    g, m = factors(layer.rows(target), 12, 0.0), torch.cat([x, x.new_ones(12, 1)], 1)
    columns = F.normalize(m @ torch.linalg.pinv(g.right), dim=1)  # rows of Q⁻¹

    def found() -> int:
        """How many drawn directions are columns of Q: at a right angle to all rows of Q⁻¹ but one."""
        q = directions(g, torch.eye(12).to(g.left), 5000, 0.15, Rng(2).torch())
        return int((((q @ columns.T).abs() > 1e-3).sum(1) == 1).sum())

    many = found()
    monkeypatch.setattr(spear, "drawn_units", of_all)
    few = found()
    assert many > 3 * few
