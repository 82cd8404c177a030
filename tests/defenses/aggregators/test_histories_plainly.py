"""Rules that remember what each client sent, against their definitions with loops, over rounds with absent clients."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from helpers.loops import Row, assert_near, average, distance, norm
from helpers.rules import rule, tried
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.aggregators.hessian import hessian_times
from fedarena.defenses.aggregators.two_groups import has_groups, spreads, upper_group
from fedarena.testing.rule_laws import aggregate as run

Round = tuple[tuple[int, ...], Tensor]


@st.composite
def federations(draw: st.DrawFn, rounds: int = 4, least: int = 3) -> list[Round]:
    """Participants and uploads of some rounds: 5 to 8 clients, of whom not all take part."""
    clients, d = draw(st.integers(max(5, least), 8)), draw(st.integers(2, 12))
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    usual = torch.randn(clients, d, generator=g, dtype=torch.float64)
    found = []
    for _ in range(rounds):
        count = draw(st.integers(least, clients))
        who = tuple(torch.randperm(clients, generator=g)[:count].tolist())
        found.append((who, usual[list(who)] + 0.3 * torch.randn(count, d, generator=g, dtype=torch.float64)))
    return found


def cosine(a: Row, b: Row) -> float:
    scale = norm(a) * norm(b)
    return sum(s * t for s, t in zip(a, b, strict=True)) / scale if scale else 0.0


# -- FoolsGold -------------------------------------------------------------------------------------


def foolsgold(histories: dict[int, list[float]], confidence: float) -> dict[int, float]:
    """Algorithm 1's α of all clients with a history."""
    clients = sorted(histories)
    cs = {(i, j): cosine(histories[i], histories[j]) if i != j else 0.0 for i in clients for j in clients}
    v = {i: max(cs[i, j] for j in clients) for i in clients}
    for i, j in itertools.product(clients, clients):
        if v[j] > v[i]:
            cs[i, j] *= v[i] / v[j]
    alpha = {i: min(1.0, max(0.0, 1 - max(cs[i, j] for j in clients))) for i in clients}
    largest = max(alpha.values())
    found = {}
    for i in clients:
        a = alpha[i] / largest
        logit = -math.inf if a == 0 else math.inf if a == 1 else math.log(a / (1 - a))
        found[i] = min(1.0, max(0.0, confidence * (logit + 0.5)))
    return found


@tried
@given(federations(), st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from(["weights", "clients"]))
def test_foolsgold(rounds: list[Round], confidence: float, divide: str) -> None:
    made, memory = rule("foolsgold", confidence=confidence, divide=divide), dict[str, Tensor]()
    histories: dict[int, list[float]] = {}
    for who, x in rounds:
        done = run(made, x, senders=who, memory=memory)
        memory = dict(done.memory)
        for client, row in zip(who, x.tolist(), strict=True):
            histories[client] = [s + t for s, t in zip(histories.get(client, [0.0] * len(row)), row, strict=True)]
        alpha = foolsgold(histories, confidence)
        weights = [alpha[client] for client in who] if any(alpha[client] for client in who) else [1.0] * len(who)
        total = sum(weights) if divide == "weights" else len(who)
        assert done.used is not None
        assert_near(done.used, [w / total for w in weights], 1e-6)
        torch.testing.assert_close(done.used @ x, done.vector)


@tried
@given(federations(), st.randoms(use_true_random=False))
def test_the_order_of_participants_does_not_matter_in_any_round(rounds: list[Round], random: object) -> None:
    made = [rule("foolsgold"), rule("fldetector", rule("median"), window=1)]
    for one in made:
        memories: list[Tensors] = [{}, {}]
        for who, x in rounds:
            order = list(range(len(who)))
            random.shuffle(order)  # type: ignore[attr-defined]
            given_in = [(who, x), (tuple(who[i] for i in order), x[order])]
            done = [run(one, y, 1, senders=w, memory=m) for (w, y), m in zip(given_in, memories, strict=True)]
            memories = [d.memory for d in done]
            torch.testing.assert_close(done[0].vector, done[1].vector, rtol=1e-6, atol=1e-6)


def test_foolsgold_knows_clients_again_that_come_with_others() -> None:
    """Two sybils never meet, and their histories are compared all the same."""
    g = torch.Generator().manual_seed(0)
    x, poison = torch.randn(8, 50, generator=g), torch.randn(50, generator=g)
    made, memory = rule("foolsgold"), dict[str, Tensor]()
    weights = []
    for who in ((0, 1, 2, 6), (3, 4, 5, 7), (0, 3, 4, 6)):
        rows = torch.stack([poison if c >= 6 else x[c] for c in who])
        done = run(made, rows, senders=who, memory=memory)
        memory = dict(done.memory)
        assert done.used is not None
        weights.append(float(done.used[-1]))
    assert weights[0] > 0.2
    assert weights[1] < 1e-6
    assert weights[2] < 1e-6


def test_foolsgold_cannot_tell_a_single_attacker_nor_equal_clients() -> None:
    g = torch.Generator().manual_seed(0)
    honest = torch.ones(9, 50) + 0.1 * torch.randn(9, 50, generator=g)
    single = run(rule("foolsgold"), torch.cat([honest, -10 * honest[:1]]))
    assert single.used is not None
    assert single.used.argmax() == 9
    assert single.used[9] > 0.9
    alike = run(rule("foolsgold"), honest[:1].expand(9, 50))
    torch.testing.assert_close(alike.used, torch.full((9,), 1 / 9))


def test_foolsgold_survives_histories_that_overflow() -> None:
    made, memory = rule("foolsgold"), dict[str, Tensor]()
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    x[2] = 3e38
    for _ in range(3):
        done = run(made, x, memory=memory)
        memory = dict(done.memory)
        assert done.used is not None
        assert done.used.isfinite().all()


# -- FLDetector ------------------------------------------------------------------------------------


@tried
@given(st.integers(1, 6), st.integers(6, 10), st.integers(0, 1000))
def test_the_hessian_is_that_of_bfgs_updates(k: int, d: int, seed: int) -> None:
    """B ← B − B s sᵀ B/(sᵀ B s) + y yᵀ/(yᵀ s), from σI, on changes that belong to a positive definite matrix."""
    g = torch.Generator().manual_seed(seed)
    root = torch.randn(d, d, generator=g, dtype=torch.float64)
    true = root @ root.T + torch.eye(d, dtype=torch.float64)
    s = torch.randn(k, d, generator=g, dtype=torch.float64)
    y = s @ true
    b = torch.eye(d, dtype=torch.float64) * (y[-1] @ s[-1]) / (s[-1] @ s[-1])
    for step, change in zip(s, y, strict=True):
        b = b - torch.outer(b @ step, b @ step) / (step @ b @ step) + torch.outer(change, change) / (change @ step)
    v = torch.randn(3, d, generator=g, dtype=torch.float64)
    torch.testing.assert_close(hessian_times(s, y, v), v @ b, rtol=1e-5, atol=1e-5 * float(b.abs().max()))
    torch.testing.assert_close(hessian_times(s, y, s[-1:]), y[-1:], rtol=1e-5, atol=1e-5 * float(y.abs().max()))


def test_the_hessian_of_a_model_that_did_not_move_is_none() -> None:
    nothing = torch.zeros(3, 5)
    assert torch.equal(hessian_times(nothing, nothing, torch.ones(2, 5)), torch.zeros(2, 5, dtype=torch.float64))
    twice = torch.ones(2, 5)
    torch.testing.assert_close(hessian_times(twice, 3 * twice, twice), 3 * twice.double())


def within(values: Sequence[float], k: int) -> float:
    """W_k by trying all partitions of the sorted values into k runs."""
    ascending, n = sorted(values), len(values)
    cuts = itertools.combinations(range(1, n), k - 1)
    runs = ([ascending[a:b] for a, b in itertools.pairwise([0, *cut, n])] for cut in cuts)
    return min(sum(sum((t - statistics.fmean(run)) ** 2 for t in run) for run in some) for some in runs)


@tried
@given(st.lists(st.floats(0, 1), min_size=3, max_size=9, unique=True))
def test_two_groups_are_the_best_cut(values: list[float]) -> None:
    one, two = spreads(np.array([values]))
    assert one[0] == pytest.approx(within(values, 1), abs=1e-12)
    assert two[0] == pytest.approx(within(values, 2), abs=1e-12)
    upper = upper_group(np.array(values))
    groups = [[v for v, u in zip(values, upper, strict=True) if u == side] for side in (False, True)]
    assert max(groups[0]) < min(groups[1])
    assert sum(within(group, 1) for group in groups) == pytest.approx(two[0], abs=1e-12)


def number_of_groups(values: Sequence[float], references: Sequence[Sequence[float]], most: int) -> int:
    """The gap statistic's k, with loops over k."""
    low, high = min(values), max(values)
    scaled = [(v - low) / (high - low) for v in values]
    gaps, errors = [], []
    for k in range(1, most + 1):
        others = [within(r, k) for r in references]
        gaps.append(math.log(statistics.fmean(others)) - math.log(within(scaled, k)))
        logs = [math.log(w) for w in others]
        errors.append(math.sqrt(1 + 1 / len(others)) * statistics.pstdev(logs))
    return next((k for k in range(1, most) if gaps[k - 1] >= gaps[k] - errors[k]), most)


@tried
@given(st.integers(4, 7), st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 3.0]))
def test_there_are_groups_where_the_gap_statistic_s_k_is_above_one(n: int, seed: int, apart: float) -> None:
    g = torch.Generator().manual_seed(seed)
    values = torch.rand(n, generator=g, dtype=torch.float64)
    values[: n // 3] += apart
    references = torch.rand(6, n, generator=g, dtype=torch.float64)
    k = number_of_groups(values.tolist(), references.tolist(), 3)
    assert has_groups(values.numpy(), references.numpy()) == (k > 1)


def test_numbers_without_or_with_two_different_values() -> None:
    references = np.random.default_rng(0).random((5, 6))
    assert not has_groups(np.ones(6), references)
    assert has_groups(np.array([0.0, 0, 0, 0, 1, 1]), references)
    assert not has_groups(np.array([0.0, 1]), references[:, :2])


def predicted(s: list[list[float]], y: list[list[float]], past: Row, way: Row) -> list[float]:
    """The last upload and B times the way, by BFGS updates of a whole matrix, oldest first."""
    steps, changes = np.array(s), np.array(y)
    b = np.eye(len(past)) * (changes[-1] @ steps[-1]) / (steps[-1] @ steps[-1])
    for step, change in zip(steps, changes, strict=True):
        b = b - np.outer(b @ step, b @ step) / (step @ b @ step) + np.outer(change, change) / (change @ step)
    found: list[float] = (np.array(past) + b @ np.array(way)).tolist()
    return found


def fldetector(rounds: list[Round], window: int, groups: Callable[[int, list[float]], bool]) -> Iterator[set[int]]:
    """Who stays in each round; the inner rule is the mean."""
    sent: dict[int, list[float]] = {}
    place: dict[int, list[float]] = {}
    scores: dict[int, list[float]] = {}
    steps: list[list[float]] = []
    changes: list[list[float]] = []
    now, last = [0.0] * rounds[0][1].shape[1], None
    for t, (who, x) in enumerate(rounds):
        rows = dict(zip(who, x.tolist(), strict=True))
        known = [c for c in who if c in sent]
        if len(steps) >= window and known:
            ways = {c: [a - b for a, b in zip(now, place[c], strict=True)] for c in known}
            away = {
                c: distance(rows[c], predicted(steps[-window:], changes[-window:], sent[c], ways[c])) for c in known
            }
            for c in known:
                scores.setdefault(c, []).append(away[c] / sum(away.values()))
        judged = [c for c in who if len(scores.get(c, [])) >= window]
        means = {c: statistics.fmean(scores[c][-window:]) for c in judged}
        out: set[int] = set()
        if judged and groups(t, [means[c] for c in judged]):
            ascending = sorted(means.values())
            cut = min(range(1, len(ascending)), key=lambda i: within(ascending[:i], 1) + within(ascending[i:], 1))
            out = {c for c in judged if means[c] >= ascending[cut]}
        yield set(who) - out
        vector = average([rows[c] for c in who if c not in out])
        for c in who:
            sent[c], place[c] = rows[c], now
        if last is not None:
            steps.append([-a for a in last])
            changes.append([a - b for a, b in zip(vector, last, strict=True)])
        now, last = [a - b for a, b in zip(now, vector, strict=True)], vector


@tried
@given(federations(rounds=9, least=4), st.integers(1, 2), st.sampled_from([0.0, 20.0]))
def test_fldetector(rounds: list[Round], window: int, noise: float) -> None:
    g = torch.Generator().manual_seed(7)
    for who, x in rounds:  # client 0 contradicts itself
        if 0 in who:
            x[who.index(0)] += noise * torch.randn(x.shape[1], generator=g, dtype=torch.float64)
    made, memory = rule("fldetector", rule("mean"), window=window, references=6), dict[str, Tensor]()

    def groups(t: int, values: list[float]) -> bool:
        generator = Rng(t, ("gap",)).torch()
        references = torch.rand(6, len(values), generator=generator, dtype=torch.float64)
        return has_groups(np.array(values), references.numpy())

    for t, ((who, x), stay) in enumerate(zip(rounds, fldetector(rounds, window, groups), strict=True)):
        done = run(made, x, senders=who, memory=memory, seed=t)
        memory = dict(done.memory)
        curvature = [float(s @ y) for s, y in zip(memory[STEPS], memory[CHANGES], strict=True)]
        assume(all(abs(c) > 1e-3 for c in curvature))  # else the full matrix and the compact form round apart
        assert done.used is not None
        assert {c for c, w in zip(who, done.used.tolist(), strict=True) if w} == stay
        torch.testing.assert_close(done.used @ x, done.vector)


STEPS, CHANGES = "consistency of steps", "consistency of changes"


def quadratic(attack: float, rounds: int, **options: int) -> Iterator[Tensor]:
    """The weights of 16 clients with quadratic losses, of whom 0 to 3 add noise, round by round."""
    g = torch.Generator().manual_seed(0)
    d, n = 20, 16
    curvature = torch.linspace(0.5, 1.5, d, dtype=torch.float64)
    minima = torch.randn(n, d, generator=g, dtype=torch.float64)
    w, memory = torch.full((d,), 5.0, dtype=torch.float64), dict[str, Tensor]()
    made = rule("fldetector", rule("geometric-median"), **options)
    for t in range(rounds):
        x = curvature * (w - minima) + 0.1 * torch.randn(n, d, generator=g, dtype=torch.float64)
        x[:4] += attack * torch.randn(4, d, generator=g, dtype=torch.float64)
        done = run(made, x, 4, memory=memory, seed=t)
        memory = dict(done.memory)
        assert done.used is not None
        yield done.used
        w = w - 0.05 * done.vector


def test_fldetector_leaves_out_who_contradicts_itself_after_two_windows() -> None:
    verdicts = [used > 0 for used in quadratic(attack=2.0, rounds=35)]
    assert all(kept.all() for kept in verdicts[:19])
    assert all(not kept[:4].any() and kept[4:].all() for kept in verdicts[25:])


def test_fldetector_hands_the_inner_rule_its_own_memory() -> None:
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    made = rule("fldetector", rule("centered-clipping"))
    done = run(made, x, 2)
    again = run(made, x, 2, memory=done.memory)
    bare = run(rule("centered-clipping"), x, 2, memory=run(rule("centered-clipping"), x, 2).memory)
    torch.testing.assert_close(again.vector, bare.vector)
    assert "center" in again.memory


def test_every_option_of_fldetector_acts() -> None:
    assert all(bool((used > 0).all()) for used in quadratic(attack=2.0, rounds=12))
    assert not all(bool((used > 0).all()) for used in quadratic(attack=2.0, rounds=12, window=3))
    few, many = (torch.stack([*quadratic(attack=0.15, rounds=60, window=2, references=count)]) > 0 for count in (2, 20))
    assert not torch.equal(few, many)
