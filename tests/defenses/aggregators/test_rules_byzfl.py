"""Agreement with ByzFL, where it is installed, with the exact relation where the two differ by intention.

What ByzFL does not have is held to a definition in loops (`test_rules_plainly.py`) and, for its numerical core, to:

    bulyan     Flower's, in `benchmarks/aggregators.py`: its thirty packages are too much for the tests
    dnc        numpy's singular value decomposition
    signguard  scikit-learn's mean shift and bandwidth
    fltrust    nothing: a cosine and a scaling are all of it
    flame      scikit-learn's HDBSCAN
    others     nothing: they are sums, signs and cosines; FLDetector's Hessian is held to BFGS updates of a matrix
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch
from helpers.loops import caf
from helpers.rules import NAMES, Uploads, rule, tried, uploads
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from fedarena.core.torchvision_import import declare_operators
from fedarena.testing.rule_laws import aggregate as run

declare_operators()  # ByzFL imports torchvision, whose compiled operators need not be there
byzfl = pytest.importorskip("byzfl", reason="ByzFL is not installed")


HERE = {"mean", "median", "trimmed-mean", "krum", "multi-krum", "geometric-median", "centered-clipping"}
HERE |= {"norm-bounding", "nnm", "bucketing", "clipping", "arc", "caf"}
NOT_IN_BYZFL = {
    "bulyan",
    "dnc",
    "signguard",
    "fltrust",
    "flame",
    "foolsgold",
    "rlr",
    "lasa",
    "foundationfl",
    "fldetector",
}


def test_every_rule_is_held_to_byzfl_or_has_nothing_there_to_be_held_to() -> None:
    assert {*NAMES} == HERE | NOT_IN_BYZFL
    theirs = {name.lower() for name in vars(byzfl)}
    assert not theirs & NOT_IN_BYZFL


def assert_same(ours: Tensor, theirs: Any) -> None:
    torch.testing.assert_close(ours.float(), theirs, rtol=1e-4, atol=1e-4)


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_coordinate_rules(u: Uploads) -> None:
    assert_same(run(rule("median"), u.x, u.f).vector, byzfl.Median()(u.x))
    assert_same(run(rule("trimmed-mean"), u.x, u.f).vector, byzfl.TrMean(u.f)(u.x))
    assert_same(run(rule("mean"), u.x).vector, byzfl.Average()(u.x))


@tried
@given(uploads(lambda f: 2 * f + 4))
def test_krum_with_one_more_expected_there(u: Uploads) -> None:
    """ByzFL sums the n − f − 1 nearest, the paper the n − f − 2: its f + 1 is our f. Its Multi-Krum averages n − f."""
    assume(len(u.x) - u.f - 2 >= 2)  # with one neighbour two rows tie
    assert_same(run(rule("krum"), u.x, u.f).vector, byzfl.Krum(u.f + 1)(u.x))
    assert_same(run(rule("multi-krum", m=len(u.x) - u.f - 1), u.x, u.f).vector, byzfl.MultiKrum(u.f + 1)(u.x))


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_geometric_median_where_both_have_converged(u: Uploads) -> None:
    """ByzFL starts at 0, and d = 1 has a whole interval of medians for even n."""
    assume(u.x.shape[1] > 3)
    ours = run(rule("geometric-median", iterations=1000), u.x, u.f).vector
    torch.testing.assert_close(ours.float(), byzfl.GeometricMedian(nu=1e-6, T=1000)(u.x), rtol=1e-2, atol=1e-2)


@tried
@given(uploads(lambda f: 2 * f + 1), st.integers(1, 4), st.sampled_from([0.5, 3.0]))
def test_centered_clipping_over_rounds(u: Uploads, iterations: int, tau: float) -> None:
    theirs, memory = byzfl.CenteredClipping(L=iterations, tau=tau), {}
    for _ in range(3):
        done = run(rule("centered-clipping", tau=tau, iterations=iterations), u.x, u.f, memory=memory)
        memory = done.memory
        assert_same(done.vector, theirs(u.x))


@tried
@given(uploads(lambda f: 2 * f + 2))
def test_nnm(u: Uploads) -> None:
    mixed = byzfl.NNM(u.f)(u.x)
    assert_same(run(rule("nnm", rule("median")), u.x, u.f).vector, byzfl.Median()(mixed))


@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([0.5, 3.0, 50.0]))
def test_norm_bounding_is_the_average_of_clipped_rows(u: Uploads, bound: float) -> None:
    clipped = byzfl.Clipping(bound)(u.x.clone())  # it writes into what it is given
    assert_same(run(rule("norm-bounding", bound=bound), u.x, u.f).vector, byzfl.Average()(clipped))


@tried
@given(uploads(), st.integers(1, 5), st.data())
def test_bucketing_in_the_same_order(u: Uploads, s: int, data: st.DataObject) -> None:
    """Both shuffle with torch.randperm."""
    order = torch.tensor(data.draw(st.permutations(range(len(u.x)))))
    with patch("torch.randperm", lambda n, **_: order):
        means = byzfl.Bucketing(s)(u.x)
        assert_same(run(rule("bucketing", rule("median"), s=s), u.x, 0).vector, byzfl.Median()(means))


@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([0.5, 3.0, 50.0]))
def test_clipping(u: Uploads, c: float) -> None:
    clipped = byzfl.Clipping(c)(u.x.clone())
    assert_same(run(rule("clipping", rule("median"), c=c), u.x, u.f).vector, byzfl.Median()(clipped))


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_arc(u: Uploads) -> None:
    clipped = byzfl.ARC(u.f)(u.x.clone())
    assert_same(run(rule("arc", rule("median")), u.x, u.f).vector, byzfl.Median()(clipped))


@tried
@given(uploads(lambda f: 4 * f + 4, most=2))
def test_caf_on_a_line_where_one_power_iteration_is_exact(u: Uploads) -> None:
    """It starts at a random vector, and ends on a line at the eigenvector; started there it has the eigenvalue, too.

    Rows without weight count there: so does this definition, which is ours otherwise (`test_filters_plainly.py`).
    """
    assume(u.f > 0)
    line = u.x[0] / u.x[0].norm()
    along = u.x[0] + u.x[:, :1] * line
    with patch("torch.randn", lambda *_, **__: line.float()):
        theirs = byzfl.CAF(u.f)(along)
    assert_same(torch.tensor(caf(along.tolist(), u.f, dead_rows_count=True)), theirs)


def test_caf_does_not_end_there_with_a_far_row() -> None:
    """The far row loses its weight at once, and keeps the largest τ: nobody else loses much after that."""
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    x[0] = 1e6
    steps = []

    def start(*_: Any, **__: Any) -> Tensor:
        steps.append(1)
        if len(steps) > 1000:
            raise TimeoutError
        return torch.ones(4)

    with patch("torch.randn", start), pytest.raises(TimeoutError):
        byzfl.CAF(2)(x)
    assert run(rule("caf"), x, 2).vector.norm() < 3
