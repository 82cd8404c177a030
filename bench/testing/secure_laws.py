"""Laws of secure sums."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.secure_sum import Exchange, SecureSum, TooFewSurvivors
from fedarena.core.errors import UserError, of_type
from fedarena.core.rng import Rng
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require
from fedarena.testing.same import same

CLIENTS = 6
"""That take part in an exchange."""
LENGTH = 4000
"""Of a vector: two vectors that have nothing to do with each other have a correlation of some 0.016."""
HIDDEN = 0.1
"""The largest correlation of a message with what it hides."""


def vectors(dtype: torch.dtype = torch.float32) -> Tensor:
    """What clients add up, already weighted."""
    return torch.randn(CLIENTS, LENGTH, generator=Rng(CLIENTS).torch(), dtype=torch.float64).to(dtype) / 100


def sum_of(method: Method) -> SecureSum:
    """The secure sum."""
    made: SecureSum = method.target(method.options)
    return made


def exchange(method: Method, x: Tensor, seed: int = 0) -> Exchange:
    """The first exchange from this seed on in which enough clients are left."""
    for later in range(20):
        try:
            made = sum_of(method)(x, Rng(seed).child(later))
        except TooFewSurvivors:
            continue
        return of_type(Exchange, made, "secure", method.target.__call__)
    raise LawBroken("20 rounds in a row failed", "let fewer clients drop out")


@law("secure")
def sum_is_exact(method: Method) -> None:
    """The total is the survivors' sum, of the vectors' type, but for the rounding that the method declares."""
    for dtype in (torch.float32, torch.float64):
        x = vectors(dtype)
        done = exchange(method, x)
        got = f"{done.total.dtype} {list(done.total.shape)}"
        require(got == f"{dtype} [{LENGTH}]", f"the total is {got}", f"return {dtype} [{LENGTH}]")
        ascending = sorted({*done.survivors}) == [*done.survivors] and {*done.survivors} <= {*range(CLIENTS)}
        require(ascending, f"the survivors are {done.survivors}", "list positions in ascending order")
        true = x[list(done.survivors)].double().sum(0)
        away = float((done.total.double() - true).abs().max())
        allowed = 8 * sum_of(method).rounding(CLIENTS, dtype) + 64 * torch.finfo(dtype).eps * float(
            x.abs().sum(0).max()
        )
        figure = f"the total is {away:.3g} away from the survivors' sum, allowed by `rounding`: {allowed:.3g}"
        require(away <= allowed, figure, "declare the error in `rounding`, or avoid it")


@law("secure")
def messages_hide(method: Method) -> None:
    """No message tells of the vector in it: their correlation is below a tenth."""
    x = vectors()
    done = exchange(method, x)
    if done.wire is None:
        raise LawIdle("it sends no messages")
    require(len(done.wire) == CLIENTS, f"{len(done.wire)} messages of {CLIENTS} clients", "send one row a client")
    uploads_are_hidden(done.wire[list(done.survivors)], x[list(done.survivors)])


def uploads_are_hidden(wire: Tensor, held: Tensor) -> None:
    """Raises LawBroken where a message has much to do with the vector in it; both [clients, d]."""
    for sent, vector in zip(wire.double(), held.double(), strict=True):
        found = abs(float(torch.corrcoef(torch.stack([sent[: len(vector)], vector]))[0, 1]))
        seen = 1.0 if math.isnan(found) else found
        require(seen < HIDDEN, f"a message's correlation with its vector is {seen:.2f}", "mask every coordinate anew")


@law("secure")
def masks_are_drawn(method: Method) -> None:
    """The same random stream gives the same messages, and another stream gives others."""
    x = vectors()
    one, again, other = exchange(method, x), exchange(method, x), exchange(method, x, seed=1)
    require(same(one, again), "two exchanges of one stream differ", "draw from the call's rng alone")
    if one.wire is None or other.wire is None:
        raise LawIdle("it sends no messages")
    equal = float((one.wire == other.wire).double().mean())
    require(
        equal < 0.5, f"{equal:.0%} of the messages' numbers are those of another stream", "draw masks for each round"
    )


@law("secure")
def vectors_stay(method: Method) -> None:
    """A secure sum does not change the vectors in place."""
    x = vectors()
    before = x.clone()
    exchange(method, x)
    changed = int((x != before).sum())
    require(changed == 0, f"{changed} of {x.numel()} numbers of the vectors changed", "work on a copy")


@law("secure")
def without_messages_is_the_same(method: Method) -> None:
    """The sum without messages has the total, the survivors and the bytes of the protocol."""
    x, secure = vectors(), sum_of(method)
    if type(secure).without_messages is SecureSum.without_messages:
        raise LawIdle("it is the protocol itself (without_messages is not overridden)")
    for seed in range(6):
        done, short = _outcome(secure.__call__, x, seed), _outcome(secure.without_messages, x, seed)
        require(same(done, short), f"with seed {seed} the two differ", "compute the same total, survivors and bytes")


def _outcome(sum_up: object, x: Tensor, seed: int) -> tuple[object, ...]:
    try:
        done: Exchange = sum_up(x, Rng(seed))  # type: ignore[operator]
    except TooFewSurvivors as failed:
        return str(failed), failed.bytes_up, failed.bytes_down
    return done.total, done.survivors, done.extra_down


@law("secure")
def one_client_is_refused(method: Method) -> None:
    """A sum of a single client is refused by UserError, since it would be the vector itself."""
    try:
        sum_of(method).check(1)
    except UserError:
        return
    raise LawBroken("check(1) accepts it", "call `fedarena.contracts.secure_sum.require_two` in `check`")
