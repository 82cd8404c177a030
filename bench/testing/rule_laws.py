"""Laws of aggregation rules and their wrappers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, Wrapper, checked
from fedarena.core.errors import UserError, describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.testing.federations import CORRUPTED, crowd, plain_share_left, plainly_trained, rule_of, share_left
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require
from fedarena.testing.same import copied, same

DRAWS = 300
"""How many streams a rule is tried with that draws at random."""
DEVIATIONS = 5.0
"""How many standard errors two means may lie apart that should be equal."""
REMEMBERED = 30
"""Rounds in which a rule that remembers must have found something."""
NUMBERS = [(n, f) for n in (1, 2, 3, 5, 8, 9, 12) for f in range(min(n, 5))]
"""(uploads, how many are assumed to be corrupted)"""


def call(
    n: int,
    f: int = 0,
    seed: int = 0,
    memory: Tensors | None = None,
    reference: Callable[[], Tensor] | None = None,
    weights: Tensor | None = None,
    senders: tuple[int, ...] = (),
    shapes: tuple[tuple[int, ...], ...] = (),
) -> Call:
    """What the harness hands to a rule beside the uploads."""
    return Call(
        weights=torch.ones(n) if weights is None else weights,
        f=f,
        memory=memory or {},
        rng=Rng(seed),
        reference=reference,
        senders=senders,
        shapes=shapes,
    )


def aggregate(made: Aggregator, x: Tensor, f: int = 0, **more: Any) -> Aggregate:
    """Check and aggregate, with `call`'s further arguments; the reference, if none is given, is the first row.

    Raises:
        UserError: the numbers are refused, or what the rule returns is no aggregate.
    """
    made.check(len(x), f)
    returned = returned_by(made, x, f, **more)
    fits = checked(returned, made, x)
    return returned if isinstance(returned, Aggregate) else fits  # in the rule's own precision


def returned_by(made: Aggregator, x: Tensor, f: int, **more: Any) -> Any:
    """What the rule makes of the uploads, which may be no aggregate."""
    return made(x, call(len(x), f, **{"reference": lambda: x[0], **more}))


def accepted(made: Aggregator, n: int, f: int) -> bool:
    """Whether the rule is defined for these numbers."""
    try:
        made.check(n, f)
    except UserError:
        return False
    return True


def usual_number(made: Aggregator) -> tuple[int, int]:
    """23 uploads of which 2 are assumed to be corrupted, or none where the rule does not take that."""
    return next(((23, f) for f in (2, 1, 0) if accepted(made, 23, f)), (1, 0))


@law("aggregator")
def numbers_refused(method: Method) -> None:
    """A rule computes for every number of uploads that its `check` accepts, and refuses others by UserError."""
    made = rule_of(method)
    for n, f in NUMBERS:
        try:
            made.check(n, f)
        except UserError as error:
            require("\n" not in str(error), "the message has several lines", "write one line")
            continue
        except Exception as error:
            wrong = f"check({n}, {f}) raises {type(error).__name__}: {error}"
            raise LawBroken(wrong, "raise UserError, as `fedarena.contracts.aggregator.require` does") from error
        try:
            returned = returned_by(made, crowd(n), f)
        except Exception as error:
            wrong = f"check({n}, {f}) accepts what the rule cannot compute: {describe(error)}"
            raise LawBroken(wrong, "mend that line, or refuse these numbers in `check`") from error
        checked(returned, made, crowd(n))


@law("aggregator")
def vector_fits(method: Method) -> None:
    """The aggregate of finite uploads is one finite vector [d] of their type, and the memory holds tensors."""
    made = rule_of(method)
    n, f = usual_number(made)
    for dtype in (torch.float32, torch.float64):
        for size in (1.0, 1e-12, 1e6):
            done = aggregate(made, size * crowd(n, dtype=dtype), f)
            got = f"{done.vector.dtype} {list(done.vector.shape)}"
            expected = f"{dtype} [30]"
            require(got == expected, f"the vector is {got} where uploads are {dtype} [{n}, 30]", f"return {expected}")
            lost = int((~done.vector.isfinite()).sum())
            require(lost == 0, f"{lost} of 30 numbers are not finite for uploads of size {size:g}", "guard divisions")
            tensors = all(isinstance(t, Tensor) for t in done.memory.values())
            require(tensors, "the memory holds what is no tensor", "keep tensors")


@law("aggregator")
def uploads_stay(method: Method) -> None:
    """A rule does not change the uploads, nor its memory, in place."""
    made = rule_of(method)
    n, f = usual_number(made)
    for d in (1, 30):
        x, memory = crowd(n, d), dict[str, Tensor]()
        for _ in range(2):
            before = x.clone(), copied(memory)
            after = aggregate(made, x, f, memory=memory).memory
            changed = int((x != before[0]).sum())
            require(changed == 0, f"{changed} of {x.numel()} numbers of the uploads changed", "work on a copy")
            require(same(memory, before[1]), "the memory that it was given changed", "return a new one")
            memory = after


@law("aggregator")
def stream_decides(method: Method) -> None:
    """The same uploads, memory and random stream give the same aggregate."""
    one, two = (_once(rule_of(method)) for _ in range(2))
    away = float((one - two).abs().max())
    require(away == 0, f"two calls differ by {away:.3g}", "draw from call.rng alone, and keep nothing in the object")


def _once(made: Aggregator) -> Tensor:
    n, f = usual_number(made)
    return aggregate(made, crowd(n), f).vector


@law("aggregator")
def order_is_nothing(method: Method) -> None:
    """The order of uploads does not change the aggregate; of rules that draw at random, not its distribution."""
    made = rule_of(method)
    n, f = usual_number(made)
    order = torch.randperm(n, generator=Rng(n).torch()).tolist()
    for x in (crowd(n), crowd(n, 2).round()):  # rounded: uploads and distances are equal, so that weights may differ
        try:
            order_changes_nothing(made, x, f, order, x.mean(0), weights=x.shape[1] > 2)
        except LawBroken:
            if same(*(aggregate(made, x, f, seed=seed).vector for seed in (0, 1))):
                raise
            order_changes_no_distribution(made, x, f)


def order_changes_nothing(
    made: Aggregator, x: Tensor, f: int, order: Sequence[int], reference: Tensor, weights: bool = True
) -> None:
    """Raises LawBroken where permuted uploads give another vector, or weights that are not the permuted ones."""
    one, two = (aggregate(made, rows, f, reference=lambda: reference) for rows in (x, x[list(order)]))
    remedy = "treat all uploads alike"
    tolerance = 1e-6 + 1e-6 * float(two.vector.abs().max()) if x.dtype == torch.float64 else 1e-4 * float(x.abs().max())
    away = float((one.vector - two.vector).abs().max())
    require(away <= tolerance, f"in another order the aggregate differs by {away:.3g}", remedy)
    require((one.used is None) == (two.used is None), "`used` is there in one order only", remedy)
    if weights and one.used is not None and two.used is not None:
        away = float((one.used[list(order)] - two.used).abs().max())
        require(away <= 1e-4, f"in another order the weights of the uploads differ by {away:.3g}", remedy)


def order_changes_no_distribution(made: Aggregator, x: Tensor, f: int) -> None:
    """Raises LawBroken where the mean over random streams depends on the order."""
    drawn = []
    for k, rows in enumerate((x, x.flip(0))):
        vectors = [aggregate(made, rows, f, seed=2 * seed + k, reference=lambda: x[0]).vector for seed in range(DRAWS)]
        drawn.append(torch.stack(vectors).double())
    error = torch.sqrt(sum((v.var(0) / DRAWS for v in drawn), torch.zeros(())))
    away = float(((drawn[0].mean(0) - drawn[1].mean(0)).abs() / (error + 1e-9)).max())
    figure = f"over {DRAWS} streams the means of two orders lie {away:.1f} standard errors apart"
    require(away <= DEVIATIONS, figure, "draw so that every order of the uploads is as likely")


@law("aggregator")
def used_are_weights(method: Method) -> None:
    """`used` and `votes`, where a rule gives them, are one finite number of at least 0 for each upload."""
    made = rule_of(method)
    n, f = usual_number(made)
    done = aggregate(made, crowd(n, dtype=torch.float64), f)
    if done.used is None and done.votes is None:
        raise LawIdle("it has no weights of uploads (used=None)")
    for name, weights in (("used", done.used), ("votes", done.votes)):
        if weights is not None:
            require(weights.shape == (n,), f"{name} is {list(weights.shape)} for {n} uploads", f"return [{n}]")
            low = float(weights.min())
            require(low >= 0, f"the least of {name} is {low:.3g}", "return the weight of each upload, 0 or more")


@law("aggregator")
def unanimity_wins(method: Method) -> None:
    """A rule that says that it is `unanimous` returns the upload that all senders agree on, in every round."""
    made = rule_of(method)
    if not made.unanimous:
        raise LawIdle("it does not say so (unanimous = False)")
    equal_uploads_win(made)


def equal_uploads_win(made: Aggregator, n: int = 9) -> None:
    """Raises LawBroken where equal uploads give another vector, in two rounds."""
    for d in (1, 30):
        x = crowd(1, d).expand(n, d).clone()
        away = _farthest(made, x, 0, x[0])
        figure = f"{n} equal uploads give a vector that is {away:.3g} away from them"
        require(away <= 1e-5 * (1 + float(x.abs().max())), figure, "set unanimous = False, or return that upload")


@law("aggregator")
def means_average(method: Method) -> None:
    """Where a rule says that it averages, it gives the mean of any uploads, in later rounds too."""
    made = rule_of(method)
    for x, f in _claimed(made, "averages"):
        away = _farthest(made, x, f, x.mean(0))
        figure = f"averages({len(x)}, {f}) is true, and the vector is {away:.3g} away from the mean"
        require(away <= 1e-4 * (1 + float(x.abs().max())), figure, "say no in `averages`")


def _farthest(made: Aggregator, x: Tensor, f: int, expected: Tensor) -> float:
    """How far the vector lies from the expected one, at most, in two rounds of the same uploads."""
    away, memory = [], dict[str, Tensor]()
    for _ in range(2):
        done = aggregate(made, x, f, memory=memory)
        away.append((done.vector - expected).abs().max())
        memory = done.memory
    return float(torch.stack(away).max())  # NaN stays NaN


@law("aggregator")
def picks_are_uploads(method: Method) -> None:
    """Where a rule says that it picks, it gives the upload of the largest weight."""
    made = rule_of(method)
    for x, f in _claimed(made, "picks"):
        done = aggregate(made, x, f)
        picked = done.weight is not None and torch.equal(done.vector, x[int(done.weight.argmax())])
        figure = f"picks({len(x)}, {f}) is true, and the vector is not the upload of the largest weight"
        require(picked, figure, "say no in `picks`, or give that upload the largest weight")


def _claimed(made: Aggregator, claim: str) -> Iterator[tuple[Tensor, int]]:
    """Uploads [n, 30] and f, of numbers for which the rule makes a claim. Raises LawIdle where it never does."""
    numbers = [(n, f) for n, f in NUMBERS if accepted(made, n, f) and getattr(made, claim)(n, f)]
    if not numbers:
        raise LawIdle(f"it never says so ({claim})")
    for n, f in numbers:
        yield from ((x, f) for x in (crowd(n), crowd(n).pow(3), torch.cat([1e3 * crowd(1), crowd(n)[1:]])))


@law("aggregator")
def rule_acts(method: Method) -> None:
    """A rule gives another aggregate than the mean; a wrapper, another one than the rule inside alone."""
    made = rule_of(method)
    n, f = usual_number(made)
    if made.averages(n, f):
        raise LawIdle("it says that it averages (averages)")
    few = (torch.arange(n) < f)[:, None]
    shapes = crowd(n), torch.where(few, -10.0, 1.0) * crowd(n), torch.where(few, 1e3, 1.0) * crowd(n)
    for x in shapes:
        one, plain = dict[str, Tensor](), dict[str, Tensor]()
        for t in range(REMEMBERED):
            rows = x + torch.where(few, crowd(n + t + 1)[:n], 0.1 * t)
            done = aggregate(made, rows, f, memory=one)
            without = rows.mean(0)
            if isinstance(made, Wrapper):
                alone = aggregate(made.inner, rows, f, memory=plain)
                without, plain = alone.vector, alone.memory
            if not torch.allclose(done.vector, without, rtol=1e-5, atol=1e-6):
                return
            one = done.memory
    beside = "the rule inside" if isinstance(made, Wrapper) else "the mean"
    raise LawBroken(
        f"in {REMEMBERED * len(shapes)} rounds it gave what {beside} gives", "let it do something, or leave it out"
    )


@law("aggregator")
def withstands_the_flipped(method: Method) -> None:
    """A rule keeps FedAvg's accuracy, and most of it where a fifth of clients send tenfold uploads backwards."""
    made = rule_of(method)
    if made.averages(20, CORRUPTED):
        raise LawIdle("it says that it averages (averages)")
    ruined = plain_share_left()[1]
    assert ruined < 0.2, "what it is tried with ruins the mean"
    clean, left = share_left(made)
    plain = plainly_trained().accuracy
    figure = f"without an attack the accuracy is {clean:.0%}, FedAvg's {plain:.0%}"
    require(clean > plain - 0.1, figure, "discard less of what honest clients send")
    figure = f"{max(0.0, left):.0%} of the accuracy above chance is left, of the mean's {ruined:.0%}"
    require(
        left > 0.8 and not math.isnan(left),
        figure,
        "bound what an upload can do; or, if the rule has another purpose, leave this law out",
    )
