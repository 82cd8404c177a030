"""The masking protocol as a whole: exact sums, dropouts, costs and options."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection

import numpy as np
import pytest
import torch
from helpers.secure import play
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.contracts.secure_sum import Exchange, TooFewSurvivors, TooLarge
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.pairwise_masks import CARD, Options
from fedarena.defenses.secure.fixed_point import FixedPoint
from fedarena.defenses.secure.key_agreement import Once
from fedarena.defenses.secure.pairwise import PairwiseMasks


def vectors(n: int, d: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(n), dtype=dtype) / n


def exact(x: Tensor, alive: Collection[int], options: Options) -> list[float]:
    """The sum of the survivors' encodings, exactly."""
    code = FixedPoint(options.bits, options.bound, len(x))
    decoded = code.decode(code.encode(x.double().numpy()))
    return [math.fsum(column) for column in decoded[sorted(alive)].T]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 7), st.sampled_from([32, 64]))
def test_the_sum_is_exact_for_all_dropouts_or_the_round_fails(data: st.DataObject, n: int, bits: int) -> None:
    """Whoever drops before the masked vector is not in the sum; who drops after it is."""
    t = data.draw(st.integers(n // 2 + 1, n))
    before = data.draw(st.sets(st.integers(0, n - 1)))
    after = data.draw(st.sets(st.integers(0, n - 1)))
    dtype = np.dtype(f"<u{bits // 8}")
    x = np.random.default_rng(0).integers(0, 2**bits - 1, (n, 3), dtype=dtype, endpoint=True)

    def assert_sum_is_exact() -> None:
        total = play(x, t, Rng(0), before).total(after)
        alive = [u for u in range(n) if u not in before]
        np.testing.assert_array_equal(total, x[alive].sum(0, dtype=dtype))

    if n - len(before | after) >= t:
        assert_sum_is_exact()
    else:
        with pytest.raises(TooFewSurvivors, match=f"allowed: at least {t}"):
            assert_sum_is_exact()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_exchange_is_exact_to_the_last_bit(bits: int, dropout: float) -> None:
    options, x = Options(bits=bits, dropout=dropout, threshold=0.5), vectors(9, 5)
    late = early = 0
    for seed in range(12):
        try:
            done = PairwiseMasks(options)(x, Rng(seed))
        except TooFewSurvivors:
            continue
        assert done.total.tolist() == exact(x, done.survivors, options)
        gone = [u for u in range(9) if u not in done.survivors]
        assert not done.wire[gone].any()
        assert done.wire[list(done.survivors)].all()
        early += len(gone)
        answered = (done.extra_up - 64 - 8 * 86) / 37
        late += len(done.survivors) - round(answered)
    assert done.wire.dtype == (torch.int32 if bits == 32 else torch.int64)
    assert (early > 0, late > 0) == (dropout > 0, dropout > 0)


def outcome(sum_up: Callable[[Tensor, Rng], Exchange], x: Tensor, seed: int) -> tuple[object, ...]:
    """What a round comes to: the sum, its survivors and all bytes of one participant, or how the round failed."""
    try:
        done = sum_up(x, Rng(seed))
    except TooFewSurvivors as failed:
        return str(failed), failed.bytes_up, failed.bytes_down
    vectors = 0 if done.wire is None else len(done.survivors) * done.wire[0].nbytes
    up = round(len(x) * done.extra_up) + vectors
    return done.total.tolist(), done.survivors, up, done.extra_down


@pytest.mark.parametrize(("bits", "neighbours", "dropout"), [(32, 0, 0.4), (64, 0, 0.4), (64, 4, 0.25)])
def test_the_sum_without_messages_is_that_of_the_protocol(bits: int, neighbours: int, dropout: float) -> None:
    secure, x = PairwiseMasks(Options(bits=bits, dropout=dropout, neighbours=neighbours)), vectors(7, 5)
    outcomes = [outcome(secure, x, seed) for seed in range(16)]
    assert [outcome(secure.without_messages, x, seed) for seed in range(16)] == outcomes
    told = " ".join(str(first) for first, *_ in outcomes)
    assert "sent a masked vector" in told
    assert "answered the unmasking" in told
    assert "[" in told


def test_values_beyond_the_bound_are_refused_without_messages_too() -> None:
    with pytest.raises(TooLarge, match=re.escape("option 'bound' is 0.5, allowed: at least")):
        PairwiseMasks(Options(bound=0.5)).without_messages(torch.ones(3, 2), Rng(0))


def test_clients_drop_as_often_as_said_half_of_them_early() -> None:
    secure, n = PairwiseMasks(Options(dropout=0.2)), 1000
    before, after = secure._leave(n, Rng(0))
    assert not before & after
    assert len(before) == pytest.approx(100, abs=30)
    assert len(after) == pytest.approx(100, abs=30)


def test_the_total_keeps_the_type_of_the_vectors() -> None:
    x = vectors(4, 6, torch.float32)
    done = PairwiseMasks(Options())(x, Rng(0))
    assert done.total.dtype == torch.float32
    torch.testing.assert_close(done.total, x.sum(0))


def test_the_same_randomness_replays_and_other_randomness_masks_anew() -> None:
    x, secure = vectors(3, 50), PairwiseMasks(Options())
    one, same, other = (secure(x, rng) for rng in (Rng(0), Rng(0), Rng(0).child("next round")))
    assert torch.equal(one.wire, same.wire)
    assert (one.wire != other.wire).all()
    assert torch.equal(one.total, other.total)


def test_remembered_agreements_change_no_message() -> None:
    x = np.arange(12, dtype=np.uint32).reshape(4, 3)
    plain, quick = play(x, 3, Rng(0), {2}), play(x, 3, Rng(0), {2}, Once())
    assert {u: y.tobytes() for u, y in plain.uploads.items()} == {u: y.tobytes() for u, y in quick.uploads.items()}
    np.testing.assert_array_equal(plain.total(), quick.total())


def test_further_bytes_grow_linearly() -> None:
    """Keys up and down, a box for each other client, a share of each client; 4 bytes name a client."""
    for n in (2, 5, 10, 20):
        done = PairwiseMasks(Options())(vectors(n, 7), Rng(0))
        assert done.extra_up == 64 + 86 * (n - 1) + 37 * n
        assert done.extra_down == 68 * n + 86 * (n - 1) + 4 * n


def test_further_bytes_do_not_depend_on_the_vectors() -> None:
    costs = {
        (done.extra_up, done.extra_down)
        for d in (1, 100)
        for bits in (32, 64)
        for done in [PairwiseMasks(Options(bits=bits))(vectors(5, d), Rng(0))]
    }
    assert len(costs) == 1


def test_one_participant_is_refused() -> None:
    with pytest.raises(UserError, match="1 participants a round, allowed: 2 or more"):
        PairwiseMasks(Options()).check(1)
    PairwiseMasks(Options()).check(2)


@pytest.mark.parametrize(
    ("n", "share", "t"),
    [(2, 2 / 3, 2), (3, 2 / 3, 2), (9, 2 / 3, 6), (10, 2 / 3, 7), (100, 0.55, 55), (10, 0.5, 6), (5, 1.0, 5)],
)
def test_the_threshold_is_the_share_and_a_majority(n: int, share: float, t: int) -> None:
    assert PairwiseMasks(Options(threshold=share)).threshold(n) == t


def test_the_threshold_decides_whether_a_round_fails() -> None:
    x = vectors(10, 4)
    seed = next(s for s in range(100) if 1 <= sum(map(len, _gone(10, s))) <= 3)
    assert PairwiseMasks(Options(dropout=0.2, threshold=0.5))(x, Rng(seed)).survivors
    with pytest.raises(TooFewSurvivors, match=r"allowed: at least 10 \(see options 'threshold' and 'dropout'\)"):
        PairwiseMasks(Options(dropout=0.2, threshold=1.0))(x, Rng(seed))


def _gone(n: int, seed: int) -> tuple[set[int], set[int]]:
    return PairwiseMasks(Options(dropout=0.2))._leave(n, Rng(seed).child("dropout"))


def test_the_bound_sets_the_step() -> None:
    x = vectors(3, 1000)
    errors = [
        float((PairwiseMasks(Options(bits=32, bound=bound))(x, Rng(0)).total - x.sum(0)).abs().max())
        for bound in (2.0, 16.0, 1024.0)
    ]
    assert errors[0] < errors[1] / 4 < errors[2] / 100
    with pytest.raises(UserError, match=r"option 'bound' is 0\.01"):
        PairwiseMasks(Options(bound=0.01))(x, Rng(0))


def test_the_card_leads_here() -> None:
    assert CARD.load() is PairwiseMasks
    assert CARD.parse({"bits": "32", "bound": "0.01"}) == Options(bits=32, bound=0.01)
    for wrong in ({"bits": "16"}, {"bound": "0"}, {"dropout": "1"}, {"threshold": "0.4"}):
        with pytest.raises(UserError, match=f"option '{next(iter(wrong))}' is"):
            CARD.parse(wrong)
