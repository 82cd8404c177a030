"""Masks among neighbours alone (Bell et al. 2020): exact sums, what coalitions learn, and the bounds on the card."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
import torch
from helpers.secure import Play, play, secrets, without
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.contracts.secure_sum import TooFewSurvivors
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.pairwise_masks import CARD, Options
from fedarena.defenses.secure.graph import circles, risk, sums_seen
from fedarena.defenses.secure.key_agreement import KeyPair
from fedarena.defenses.secure.pairwise import PairwiseMasks
from fedarena.defenses.secure.stream import Words, words

D = 6


def vectors(n: int) -> Words:
    return np.random.default_rng(n).integers(0, 2**64 - 1, (n, D), dtype=np.uint64, endpoint=True)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(4, 9), st.sampled_from([2, 4]))
def test_the_sum_is_exact_for_all_dropouts_or_the_round_fails(data: st.DataObject, n: int, k: int) -> None:
    """It fails where fewer than t of some client's circle are left, and only there."""
    k = min(k, (n - 2) // 2 * 2)
    t, x = data.draw(st.integers((k + 1) // 2 + 1, k + 1)), vectors(n)
    before, after = (data.draw(st.sets(st.integers(0, n - 1), max_size=3)) for _ in range(2))
    left = set(range(n)) - before - after
    if all(len(circle & left) >= t for circle in circles(n, k, Rng(0).child("graph"))):
        total = play(x, t, Rng(0), before, neighbours=k).total(after)
        alive = [u for u in range(n) if u not in before]
        np.testing.assert_array_equal(total, x[alive].sum(0, dtype=x.dtype))
    else:
        with pytest.raises(TooFewSurvivors):
            play(x, t, Rng(0), before, neighbours=k).total(after)


def test_the_graph_joins_each_client_to_k_others() -> None:
    of = circles(11, 4, Rng(0))
    assert [len(circle) for circle in of] == [5] * 11
    assert all(u in of[u] for u in range(11))
    assert all((v in of[u]) == (u in of[v]) for u in range(11) for v in range(11))
    assert circles(11, 4, Rng(1)) != of
    assert circles(5, 4, Rng(0)) == circles(5, 0, Rng(0)) == [frozenset(range(5))] * 5


def stripped(done: Play, colluders: Collection[int], group: Collection[int]) -> Words:
    """What server and colluders make of the uploads of a group: without self masks and the colluders' masks."""
    total = np.zeros(D, np.uint64)
    for u in group:
        client = done.clients[u]
        total += done.uploads[u] - words(client.self_seed, D, 64)  # as the unmasking tells of everybody alive
        for v in done.server.circles[u] & set(colluders):  # the mask as the colluder knows it, whose sign is the other
            total -= without(np.zeros(D, np.uint64), v, done.clients[v].masking, {u: client.masking.public})
    return total


def test_who_has_colluders_for_neighbours_has_no_privacy() -> None:
    """Its group is itself, and server and colluders strip its upload; with one honest neighbour they cannot."""
    n, k, x = 10, 4, vectors(10)
    of = circles(n, k, Rng(0).child("graph"))
    around = of[0] - {0}
    done = play(x, k + 1, Rng(0), neighbours=k)
    assert frozenset({0}) in sums_seen(of, range(n), around)
    np.testing.assert_array_equal(stripped(done, around, [0]), x[0])
    fewer = set(sorted(around)[1:])
    assert frozenset({0}) not in sums_seen(of, range(n), fewer)
    assert (stripped(done, fewer, [0]) != x[0]).all()


@pytest.mark.parametrize("colluders", [(), (0, 1, 2), (0, 1, 2, 3, 4, 5)])
def test_colluders_learn_the_sum_of_each_part_of_the_rest(colluders: tuple[int, ...]) -> None:
    n, k, x = 10, 2, vectors(10)
    of = circles(n, k, Rng(0).child("graph"))
    groups = sums_seen(of, range(n), colluders)
    assert sorted(u for group in groups for u in group) == [u for u in range(n) if u not in colluders]
    done = play(x, k + 1, Rng(0), neighbours=k)
    for group in groups:
        np.testing.assert_array_equal(stripped(done, colluders, group), x[sorted(group)].sum(0, dtype=x.dtype))
        part = sorted(group)[:-1]
        if part:
            assert (stripped(done, colluders, part) != x[part].sum(0, dtype=x.dtype)).any()


def test_a_threshold_of_colluders_in_a_circle_unmask_its_client() -> None:
    k, t, x = 4, 3, vectors(10)
    done = play(x, t, Rng(0), neighbours=k)
    of, victim = done.server.circles, done.clients[0]
    members = [done.clients[v] for v in sorted(of[0] - {0})]
    assert secrets(members[:t], 0) == (victim._masking_raw, victim.self_seed)
    assert secrets(members[: t - 1], 0) != (victim._masking_raw, victim.self_seed)
    outside = next(c for c in done.clients if c.index not in of[0])
    assert 0 not in outside.shares
    bare = without(done.uploads[0], 0, KeyPair.of(victim._masking_raw), {m.index: m.masking.public for m in members})
    np.testing.assert_array_equal(bare - words(victim.self_seed, D, 64), x[0])


def test_the_bounds_on_the_card_hold() -> None:
    """Counted over drawn graphs with the first clients as colluders, and others that drop."""
    n, k, t, colluding, dropping, draws = 30, 6, 5, 9, 3, 400
    exposed = apart = lost = 0
    for seed in range(draws):
        of = circles(n, k, Rng(seed))
        bad, gone = set(range(colluding)), set(range(colluding, colluding + dropping))
        exposed += any(len((of[u] - {u}) & bad) >= t for u in range(n))
        apart += len(sums_seen(of, set(range(n)) - gone, bad)) > 1
        lost += any(len(circle - gone) < t for circle in of)
    bounds = risk(n, k, t, colluding, dropping)
    margin = 3 * np.sqrt(0.25 / draws)
    assert 0 < exposed / draws <= bounds.exposed + margin
    assert 0 < apart / draws <= bounds.apart + margin
    assert 0 < lost / draws <= bounds.lost + margin
    assert risk(1000, 100, 67, 100, 50).exposed < 1e-20


def test_bytes_follow_the_neighbours_and_not_the_clients() -> None:
    x = torch.ones(40, 3) / 40
    costs = [PairwiseMasks(Options(neighbours=6))(x[:n], Rng(0)) for n in (10, 40)]
    up, down = 64 + 86 * 6 + 37 * 7, 68 * 7 + 86 * 6 + 4 * 7
    assert {(done.extra_up, done.extra_down) for done in costs} == {(up, down)}


def test_an_odd_number_of_neighbours_is_refused() -> None:
    with pytest.raises(UserError, match="option 'neighbours' is 5, allowed: 0, or an even number"):
        PairwiseMasks(Options(neighbours=5)).check(9)


def test_the_default_is_not_in_the_keys_of_records() -> None:
    from fedarena.core.options import as_recorded

    assert "neighbours" not in as_recorded(CARD.parse({}))
    assert as_recorded(CARD.parse({"neighbours": "8"}))["neighbours"] == 8
