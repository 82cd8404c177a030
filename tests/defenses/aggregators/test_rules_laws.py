"""What holds for every rule of this package beside the laws: in every wrapper, under floods, and by its numbers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import pytest
import torch
from helpers.rules import NAMES, ROBUST, RULES, WRAPPERS, Uploads, rule, tried, uploads
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.defenses.aggregators.geometry import geometry
from fedarena.testing.federations import crowd
from fedarena.testing.law import Hold, LawIdle, Method
from fedarena.testing.rule_laws import (
    aggregate as run,
)
from fedarena.testing.rule_laws import (
    call,
    equal_uploads_win,
    means_average,
    order_changes_nothing,
    picks_are_uploads,
    uploads_stay,
)

BUCKETS = 2
SENDERLESS = [("foolsgold", "bucketing"), ("foolsgold", "foundationfl")]
"""What is refused: a rule that remembers clients, on rows that are not one client's."""
EVERYWHERE = [(name, "") for name in RULES] + [
    (name, wrapper) for wrapper in WRAPPERS for name in RULES if (name, wrapper) not in SENDERLESS
]
"""Every rule, alone and in every wrapper."""
QUIET = {"flame": {"noise": 0.0}, "clipping": {"c": 1000.0}}
"""Options without which a rule adds noise, or a wrapper shortens what is usual."""
everywhere = pytest.mark.parametrize(("name", "wrapper"), EVERYWHERE)


def wrapped(name: str, wrapper: str) -> Aggregator:
    made = rule(name, **QUIET.get(name, {}))
    return rule(wrapper, made, **QUIET.get(wrapper, {})) if wrapper else made


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bucketing"])
@tried
@given(uploads(lambda f: 4 * f + 4), st.randoms(use_true_random=False))
def test_the_order_of_uploads_does_not_matter(name: str, u: Uploads, random: Random) -> None:
    """With the same random stream, also for the rules that draw coordinates."""
    order = list(range(len(u.x)))
    random.shuffle(order)
    made = rule(name, rule("geometric-median")) if name in WRAPPERS else rule(name)
    order_changes_nothing(made, u.x, u.f, order, u.x.mean(0))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bucketing"])
@tried
@given(st.integers(0, 1), st.integers(0, 6), st.integers(1, 3), st.data())
def test_nor_where_rows_are_as_far_from_each_other(name: str, f: int, more: int, d: int, data: st.DataObject) -> None:
    """Whole numbers from −2 to 2: many distances are equal, and many scores."""
    n = 4 * f + 4 + more
    x = torch.tensor(data.draw(st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=n, max_size=n)))
    order = data.draw(st.permutations(range(n)))
    made = rule(name, rule("median")) if name in WRAPPERS else rule(name)
    order_changes_nothing(made, x.double(), f, order, torch.ones(d, dtype=torch.float64), weights=False)


def test_last_digits_do_not_break_the_ties_of_flame() -> None:
    """Thirteen rows whose distances differed in their last digits in another order, and so did the cluster."""
    x = torch.tensor([[0, 0, 0]] * 5 + [[0, 0, 1]] * 4 + [[0, 1, 2], [1, 0, 0], [1, 0, 1], [1, 2, 2]]).double()
    order_changes_nothing(rule("flame"), x, 1, [*range(11), 12, 11], torch.ones(3).double(), weights=False)


def test_last_digits_do_not_break_the_ties_of_lasa() -> None:
    """All norms lie one standard deviation from their median, which is the limit."""
    x = torch.tensor([[2], [-2], [1], [1], [1], [2]]).double()
    order_changes_nothing(rule("lasa"), x, 0, [0, 1, 2, 3, 5, 4], torch.ones(1).double(), weights=False)


def test_the_order_of_uploads_does_not_matter_to_the_law_of_buckets() -> None:
    """Four rows make three pairings: each a third of the time in any order (800 draws, 5 standard deviations)."""
    x = torch.tensor([[0.0], [1.0], [10.0], [100.0]])
    made = rule("bucketing", rule("krum"))  # of two rows, the first: it tells which two were together
    for rows in (x, x[[2, 0, 3, 1]]):
        seen: Counter[frozenset[float]] = Counter()
        for seed in range(800):
            done = made(rows, call(4, 0, seed=seed))
            assert done.used is not None
            pair = frozenset(rows[done.used > 0].flatten().tolist())
            seen[pair if 0.0 in pair else frozenset({0.0, 1.0, 10.0, 100.0}) - pair] += 1
        assert len(seen) == 3
        assert all(abs(count - 800 / 3) < 5 * (800 * 2 / 9) ** 0.5 for count in seen.values())


WRAPPED = pytest.mark.parametrize(("name", "wrapper"), [(name, wrapper) for name, wrapper in EVERYWHERE if wrapper])
"""The laws hold the rules alone, and each wrapper around the median: `tests/test_laws.py`. Here is every other pair."""


def wrapped_method(name: str, wrapper: str) -> Method:
    return Method.of(registry.find("aggregator", wrapper), wrapped(name, ""), **QUIET.get(wrapper, {}))


@everywhere
def test_equal_rows_give_that_row(name: str, wrapper: str) -> None:
    equal_uploads_win(wrapped(name, wrapper))


@WRAPPED
@pytest.mark.parametrize("law", [uploads_stay, means_average, picks_are_uploads])
def test_a_law_holds_for_every_wrapper_around_every_rule(law: Hold, name: str, wrapper: str) -> None:
    with suppress(LawIdle):
        law(wrapped_method(name, wrapper))


@everywhere
def test_weights_that_senders_claim_are_not_trusted(name: str, wrapper: str) -> None:
    x = crowd(9)
    one, two = (run(wrapped(name, wrapper), x, 0, weights=w) for w in (torch.ones(9), torch.arange(1.0, 10)))
    assert torch.equal(one.vector, two.vector)


@everywhere
def test_used_is_the_weight_of_each_row(name: str, wrapper: str) -> None:
    x = crowd(23, dtype=torch.float64)
    done = run(wrapped(name, wrapper), x, 2)
    if name in ("median", "trimmed-mean", "lasa") or wrapper == "rlr":
        assert done.used is None
        return
    assert done.used is not None
    assert done.used.shape == (23,)
    assert (done.used >= 0).all()
    if name == "bulyan":  # its first step only
        assert done.weight is not None
        torch.testing.assert_close(done.weight.sum(), torch.tensor(1.0, dtype=torch.float64))
    else:
        torch.testing.assert_close(done.used @ x, done.vector)


# -- corrupted uploads -----------------------------------------------------------------------------

FLOODS = {
    "far": lambda k, d: torch.full((k, d), 1e6),
    "alternating": lambda k, d: torch.full((k, d), 1e6) * torch.tensor([1.0, -1.0]).repeat(k)[:k, None],
    "overflowing squares": lambda k, d: torch.full((k, d), 1e30),
    "largest": lambda k, d: torch.full((k, d), 3e38) * torch.tensor([1.0, -1.0]).repeat(k)[:k, None],
    "every scale": lambda k, d: torch.full((k, d), 10.0) ** torch.arange(3, 3 + 6 * k, 6)[:, None],
}


BOUNDING = ("centered-clipping", "norm-bounding", "flame", "lasa")
"""Rules that bound what a row can do, and keep its direction."""
BLIND = [("dnc", "", "every scale"), *(("dnc", wrapper, "every scale") for wrapper in WRAPPERS)]
BLIND += [(name, "foundationfl", "every scale") for name in RULES]
"""What a robust rule does not stand, by its definition: see the test after the next, and for FoundationFL
`test_filters_plainly.py`."""


@pytest.mark.parametrize(
    ("name", "wrapper", "flood"),
    [
        (n, w, flood)
        for n, w in EVERYWHERE
        for flood in FLOODS
        if n in ROBUST and w != "rlr" and (n, w, flood) not in BLIND
    ],
)
def test_robust_rules_stay_with_the_honest(name: str, wrapper: str, flood: str) -> None:
    """23 uploads, 4 corrupted; 2 in wrappers, where Bulyan gets 12 buckets."""
    f = 2 if wrapper else 4
    honest = crowd(23 - f)
    x = torch.cat([honest[:10], FLOODS[flood](f, 30), honest[10:]])
    center = honest.mean(0)
    radius = (honest - center).norm(dim=1).max()
    done = run(wrapped(name, wrapper), x, f, reference=lambda: center)
    away = (done.vector - center).norm()
    if name in BOUNDING:
        assert away < honest.norm(dim=1).max()
    else:
        assert away < radius
    if name in ("median", "trimmed-mean") and not wrapper:
        assert ((honest.amin(0) <= done.vector) & (done.vector <= honest.amax(0))).all()


def test_dnc_averages_in_what_a_larger_upload_hides() -> None:
    """By its definition: about a mean that one row moves away, the second largest is less of an outlier than others."""
    x = torch.cat([crowd(21), FLOODS["every scale"](2, 30) ** 2])
    scores = (x.double() - x.double().mean(0)) @ torch.linalg.svd(x.double() - x.double().mean(0)).Vh[0]
    assert scores.square().argsort().tolist()[0] == 21
    assert (run(rule("dnc"), x, 2).vector > 1e4).all()


def test_the_mean_goes_wherever_one_upload_wants() -> None:
    x = crowd(10)
    x[3] = 1e6
    assert (run(rule("mean"), x).vector > 9e4).all()


@pytest.mark.parametrize("name", ["norm-bounding", "centered-clipping", "fltrust"])
def test_rows_whose_squares_overflow_are_scaled_all_the_same(name: str) -> None:
    x = torch.cat([crowd(10), FLOODS["overflowing squares"](2, 30)])
    own = crowd(10).abs().mean(0)
    one, two = (run(rule(name), rows, 2, reference=lambda: own) for rows in (x, x.double()))
    torch.testing.assert_close(one.vector, two.vector.float())
    assert one.used is not None
    assert (one.used[10:] > 0).all()


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_far_rows_do_not_blur_the_distances_between_the_others(flood: str, offset: float) -> None:
    honest = crowd(12) + offset
    x = torch.cat([-FLOODS[flood](5, 30), honest])
    true = (honest.double()[:, None] - honest.double()[None]).square().sum(-1)
    found = torch.from_numpy(geometry(x).squared)
    torch.testing.assert_close(found[5:, 5:], true, rtol=1e-3, atol=1e-6)
    assert (found[:5, 5:] > found[5:, 5:].max()).all()


# -- numbers that rules are not defined for ---------------------------------------------------------

ANY = ("mean", "fltrust", "foolsgold")
"""Rules that take any number of uploads."""
LEAST = {
    "krum": lambda f: 2 * f + 3,
    "multi-krum": lambda f: 2 * f + 3,
    "bulyan": lambda f: 4 * f + 3,
    "median": lambda f: 2 * f + 1,
    "trimmed-mean": lambda f: 2 * f + 1,
    "geometric-median": lambda f: 2 * f + 1,
    "centered-clipping": lambda f: 2 * f + 1,
    "norm-bounding": lambda f: 2 * f + 1,
    "dnc": lambda f: 2 * f + 1,
    "signguard": lambda f: 2 * f + 1,
    "caf": lambda f: 2 * f + 1,
    "flame": lambda f: 2 * f + 1,
    "lasa": lambda f: 2 * f + 1,
    **dict.fromkeys(ANY, lambda f: 1),
}


def test_every_rule_has_its_least_number_here() -> None:
    assert set(LEAST) == set(RULES)


@pytest.mark.parametrize("name", [n for n in LEAST if n not in ANY])
@pytest.mark.parametrize("f", [0, 1, 3])
def test_too_few_uploads_are_refused(name: str, f: int) -> None:
    least = LEAST[name](f)
    run(rule(name), crowd(least), f)
    with pytest.raises(UserError, match=rf"^aggregator {name}: {least - 1} uploads .* {f} are .* allowed: .*uploads"):
        rule(name).check(least - 1, f)


@pytest.mark.parametrize("name", RULES)
def test_wrappers_check_what_the_inner_rule_will_get(name: str) -> None:
    for f in (1, 3):
        least = LEAST[name](f)
        if name != "foolsgold":
            rule("bucketing", rule(name), s=3).check(3 * least - 2, f)
            run(rule("bucketing", rule(name), s=3), crowd(3 * least - 2), f)
        nnm = max(least, 2 * f + 1)
        rule("nnm", rule(name)).check(nnm, f)
        with pytest.raises(UserError):
            rule("nnm", rule(name)).check(nnm - 1, f)
        if least > 1:
            with pytest.raises(
                UserError, match=rf"bucketing: {3 * least - 3} uploads in buckets of 3: aggregator {name}"
            ):
                rule("bucketing", rule(name), s=3).check(3 * least - 3, f)


def test_options_that_ask_for_too_much_are_refused() -> None:
    rule("multi-krum", m=8).check(10, 2)
    with pytest.raises(UserError, match="option m is 9"):
        rule("multi-krum", m=9).check(10, 2)
    rule("dnc", c=4.5).check(10, 2)
    with pytest.raises(UserError, match=r"option c is 4\.6"):
        rule("dnc", c=4.6).check(10, 2)
    rule("norm-bounding", bound=1.0).check(3, 3)


@pytest.mark.parametrize("wrapper", ["arc", "fldetector", "foundationfl"])
def test_wrappers_refuse_half_and_more(wrapper: str) -> None:
    rule(wrapper, rule("mean")).check(5, 2)
    with pytest.raises(UserError, match=rf"^aggregator {wrapper}: 4 uploads .* 2 are .* allowed: 2f \+ 1 uploads"):
        rule(wrapper, rule("mean")).check(4, 2)


def test_foundationfl_says_what_the_inner_rule_gets() -> None:
    with pytest.raises(UserError, match="foundationfl: 5 uploads and 2 copies: aggregator bulyan: 7 uploads"):
        rule("foundationfl", rule("bulyan")).check(5, 2)


def test_wrappers_nest() -> None:
    x = crowd(20)
    done = run(rule("bucketing", rule("nnm", rule("krum"))), x, 2)
    assert done.used is not None
    torch.testing.assert_close(done.used @ x, done.vector)
    assert (done.used > 0).sum() == 16  # the mean of the 8 nearest of 10 buckets of two


@pytest.mark.parametrize("name", ["norm-bounding", "centered-clipping", "fltrust", "signguard"])
def test_a_row_does_not_lose_its_weight_by_being_long(name: str) -> None:
    """Rules that cut lengths take a long row for a row: what records show must not shrink as it grows."""
    x = crowd(10)
    x[3] = 1.5 * x[3]
    longer = x.clone()
    longer[3] = 1.2 * longer[3]
    own = x.mean(0)
    one, two = (run(rule(name), rows, 2, reference=lambda: own) for rows in (x, longer))
    assert one.weight is not None
    assert two.weight is not None
    assert one.weight[3] > 0
    torch.testing.assert_close(one.weight, two.weight, rtol=1e-4, atol=1e-6)
    assert two.used is not None
    assert two.used[3] < two.weight[3]


def test_which_rules_pick_one_upload() -> None:
    assert {n for n in RULES if rule(n).picks(8, 1)} == {"krum"}
    assert rule("multi-krum", m=1).picks(8, 1)
    assert not rule("nnm", rule("krum")).picks(8, 1)
    for name in ("arc", "clipping", "fldetector", "foundationfl"):
        assert rule(name, rule("krum")).takes_mean_of(8, 1) == 1
        assert rule(name, rule("median")).takes_mean_of(8, 1) == 0
    assert rule("multi-krum", m=2).takes_mean_of(8, 1) == 2
    assert rule("multi-krum").takes_mean_of(8, 1) == 7
    done = run(rule("multi-krum", m=1), crowd(8), 1)
    assert torch.equal(done.vector, crowd(8)[int(done.used.argmax())])


def test_which_rules_average_when_nobody_is_expected_to_be_corrupted() -> None:
    assert {n for n in RULES if rule(n).averages(8, 0)} == {
        "mean",
        "trimmed-mean",
        "multi-krum",
        "bulyan",
        "dnc",
        "caf",
    }
    assert {n for n in RULES if rule(n).averages(8, 1)} == {"mean"}
    assert {n for n in RULES if rule("nnm", rule(n)).averages(8, 0)} == {
        *("mean", "trimmed-mean", "multi-krum", "bulyan", "dnc", "caf"),
        *("krum", "median", "geometric-median"),
    }
    assert not rule("nnm", rule("krum")).averages(8, 1)
    assert rule("median").averages(2, 0)
    assert rule("bucketing", rule("trimmed-mean")).averages(8, 0)
    assert not rule("bucketing", rule("trimmed-mean")).averages(9, 0)
    assert not rule("multi-krum", m=3).averages(8, 0)


@pytest.mark.parametrize("name", ["flame", "caf", "foolsgold", "lasa", "fldetector"])
def test_uploads_of_a_diverging_model_end_in_no_exception(name: str) -> None:
    """They are not finite, and so is the model after them: the run ends there."""
    x = crowd(9)
    x[:, 3] = torch.inf
    x[4] = torch.nan
    made, memory = rule(name, rule("mean")) if name in WRAPPERS else rule(name), dict[str, Tensor]()
    for _ in range(13):
        done = run(made, x, 2, memory=memory)
        memory = dict(done.memory)
        assert not done.vector.isfinite().all()
