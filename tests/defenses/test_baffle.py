"""BAFFLE: Stein's estimate against autograd, both levels, both wires, the deployed average, a client's memory."""

from __future__ import annotations

import math
import re
from itertools import islice

import pytest
import torch
from baffle_play import SIZES, cosine, drawn, make, one_round, start
from dbcl_play import cnn, mlp
from torch.func import grad

from fedarena.client_peak import client_peak
from fedarena.defense import Cohort, State
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.baffle import DIFFERENCES
from fedarena.defenses.perturbations import directions
from fedarena.errors import UserError
from fedarena.forms import forwards
from fedarena.memory import peak_bytes
from fedarena.rng import Rng
from fedarena.tensors import combine, flatten, nbytes, row, stack
from fedarena.transcript import weights

# -- the estimate ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_stein_s_estimate_is_unbiased(scheme):
    """The mean over 400 seeds is the gradient, within four standard errors of its own spread in every coordinate."""
    defense = make(directions=40, scheme=scheme, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    truth = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0])).double()
    found = torch.stack(
        [
            flatten(
                defense.estimate(seed, defense.differences(w, batch.x[0], batch.y[0], seed, defense.options.directions))
            ).double()
            for seed in range(400)
        ]
    )
    error = (found.mean(0) - truth) / (found.std(0) / math.sqrt(len(found)))
    assert error.abs().max() < 4.5
    assert error.std() < 1.2


@pytest.mark.parametrize("k", [10, 50, 400])
def test_cosine_follows_the_theory(k):
    """cos(ĝ, g) ≈ √(K/(n + K))."""
    defense = make(directions=k, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    truth = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0]))
    found = [
        cosine(
            flatten(
                defense.estimate(s, defense.differences(w, batch.x[0], batch.y[0], s, defense.options.directions))
            ).float(),
            truth,
        )
        for s in range(30)
    ]
    theory = math.sqrt(k / (defense.n + k))
    assert sum(found) / len(found) == pytest.approx(theory, rel=0.1)


def test_central_is_better_where_the_loss_is_curved():
    """The same directions, σ large: forward differences carry the curvature, central ones do not."""
    errors = {}
    for scheme in ("forward", "central"):
        defense = make(directions=200, scheme=scheme, sigma=0.05, precision="float64")
        w, batch = start(defense).params, drawn(defense)
        g = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0])).double()
        z = torch.stack(list(islice(directions(3, defense.n), 200))).double()
        half = 2 if scheme == "central" else 1
        found = defense.differences(w, batch.x[0], batch.y[0], 3, defense.options.directions) / (half * 0.05)
        errors[scheme] = float((found - z @ g).norm() / (z @ g).norm())
    assert errors["central"] < 0.3 * errors["forward"]


# -- a client -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_a_client_only_runs_forward_passes(level, scheme, monkeypatch):
    """Under inference mode no graph is recorded, and with torch's backward engine out of order nothing is missed."""

    def out_of_order(*args, **kwargs):
        raise AssertionError("a backward pass")

    monkeypatch.setattr("torch.autograd._engine_run_backward", out_of_order)
    monkeypatch.setattr("torch.autograd.graph._engine_run_backward", out_of_order)
    defense = make(cnn(), (1, 8, 8), directions=5, scheme=scheme, schedule={"local_epochs": level})
    sent = defense.broadcast(start(defense), Rng(0))
    with torch.inference_mode():
        plain = defense.client(sent.down, drawn(defense), {}, {})[0]
        fast = row(defense.clients(sent.down, [drawn(defense)], [{}], [{}])[0], 0)
        assert all(torch.isfinite(t).all() and not t.requires_grad for up in (plain, fast) for t in up.values())
    lawful = make(cnn(), (1, 8, 8), law=True, perturbations="client", schedule={"local_epochs": level})
    sent = lawful.broadcast(start(lawful), Rng(0))
    with pytest.raises(AssertionError, match="a backward pass"):
        lawful.client(sent.down, drawn(lawful), {}, lawful.draw(Rng(1)))


@pytest.mark.parametrize(("model", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])
@pytest.mark.parametrize("scheme", ["forward", "central"])
@pytest.mark.parametrize("perturbations", ["shared", "client"])
@pytest.mark.parametrize("level", [0, 1])
def test_the_fast_form_is_the_client_s(model, shape, scheme, perturbations, level):
    defense = make(
        *(model(), shape), directions=7, scheme=scheme, perturbations=perturbations, precision="float64",
        schedule={"local_epochs": level},
    )  # fmt: skip
    sent = defense.broadcast(start(defense), Rng(0))
    batches = [drawn(defense, c) for c in range(3)]
    noises = [defense.draw(Rng(c)) for c in range(3)]
    fast, _ = defense.clients(sent.down, batches, [{}] * 3, noises)
    slow = stack([defense.client(sent.down, b, {}, noise)[0] for b, noise in zip(batches, noises, strict=True)])
    for name in slow:
        assert torch.allclose(fast[name].double(), slow[name].double(), rtol=1e-4, atol=1e-9), name


def test_bytes_up_are_four_a_difference():
    for options, expected in (
        ({}, 4 * 20),
        ({"perturbations": "client"}, 4 * 20 + 4),
        ({"law": True}, 4 * 20),
    ):
        defense = make(directions=20, **options)
        _, _, ups, _, _ = one_round(defense, start(defense))
        assert defense.sent_bytes(ups) == 3 * expected
    fewer = make(directions=20, min_directions=5)
    _, _, ups, _, _ = one_round(fewer, start(fewer))
    counts = ups["count"].flatten().tolist()
    assert all(5 <= c <= 20 for c in counts)
    assert len(set(counts)) > 1
    assert fewer.sent_bytes(ups) == sum(4 * c + 2 for c in counts)


@pytest.mark.parametrize("level", [0, 1])
def test_a_client_evaluates_no_more_differences_than_it_sends(level, monkeypatch):
    asked, inner = [], forwards.differences

    def counted(*args):
        asked.append(args[4])
        return inner(*args)

    monkeypatch.setattr(forwards, "differences", counted)
    defense = make(directions=20, min_directions=5, schedule={"local_epochs": level})
    batches, noises = [drawn(defense, c) for c in range(3)], [defense.draw(Rng(c)) for c in range(3)]
    defense.clients(defense.broadcast(start(defense), Rng(0)).down, batches, [{}] * 3, noises)
    counts = [int(noise["count"]) for noise in noises]
    assert len(set(counts)) > 1
    assert asked == [k for k, batch in zip(counts, batches, strict=True) for _ in range(len(batch.x))]


def test_clients_with_fewer_directions_are_averaged_where_they_have_some():
    """Against the sum written out: ΔL_k is the mean over the clients that evaluated it, and the rest is left out."""
    defense = make(directions=12, min_directions=3, precision="float64")
    sent, batches, ups, _, _ = one_round(defense, start(defense))
    seed, k = int(sent.down["seed"]), ups["count"].flatten().tolist()
    w = {n: t for n, t in sent.down.items() if n != "seed"}
    each = [defense.differences(w, b.x[0], b.y[0], seed, defense.options.directions) for b in batches]
    mean = []
    for i in range(max(k)):
        has = [c for c in range(3) if k[c] > i]
        mean.append(sum(SIZES[c] * each[c][i] for c in has) / sum(SIZES[c] for c in has))
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    found = defense.direction(State(w), sent, ups, cohort, Rng(0)).step
    expected = defense.estimate(seed, torch.stack(mean))
    assert torch.allclose(flatten(found), flatten(expected).float(), rtol=1e-4, atol=1e-6)


def test_float16_loses_differences_and_says_how_many():
    lost = {}
    for precision in ("float16", "float32"):
        defense = make(directions=50, precision=precision)
        state = one_round(defense, start(defense))[-1]
        lost[precision] = float(state.verdict["vanished"].mean())
    assert lost["float16"] > 0.5
    assert lost["float32"] < 0.05


# -- down the wire --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_scalars_down_rebuild_the_server_s_model(optimizer):
    """4K + 4 bytes after the first round, and every client holds the server's W to the last bit."""
    settings = {"server_optimizer": optimizer, "adam_beta2": 0.99} if optimizer == "adam" else {}
    defense = make(directions=9, downlink="scalars", schedule=settings)
    plain = make(directions=9, schedule=settings)
    state, other, memories = start(defense), start(plain), [{}] * 3
    for t in range(4):
        sent, _, _, memories, after = one_round(defense, state, t, memories)
        assert nbytes(sent.down) == (4 * 9 + 4 if t else 4 * defense.n + 4)
        for memory in memories:
            built = {n: memory[f"model.{n}"] for n in defense.like}
            assert all(torch.equal(built[n], state.params[n]) for n in built)
        other = one_round(plain, other, t)[-1]
        state = after
        assert all(torch.equal(state.params[n], other.params[n]) for n in state.params)


def test_both_ends_draw_the_same_perturbations():
    """The server's estimate from the uploads is Σ z ΔL/(Kσ) with the directions that a client drew."""
    defense = make(directions=6)
    state = start(defense)
    sent, _, ups, _, _ = one_round(defense, state)
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    step = flatten(defense.direction(state, sent, ups, cohort, Rng(0)).step)
    z = torch.stack(list(islice(directions(int(sent.down["seed"]), defense.n), 6)))
    mean = (weights(SIZES, (0, 1, 2)) / 100) @ ups[DIFFERENCES]
    assert torch.allclose(step, mean @ z / (6 * 1e-4), rtol=1e-4, atol=1e-5)


def test_own_perturbations_average_independent_estimates():
    """Released code: the estimates' noise is averaged too, so the direction is about √C nearer the gradient."""
    found = {}
    for perturbations in ("shared", "client"):
        defense = make(sizes=(30,) * 10, directions=5, perturbations=perturbations, precision="float64")
        state, values = start(defense), []
        for t in range(20):
            sent, batches, ups, _, _ = one_round(defense, state, t)
            cohort = Cohort(tuple(range(10)), torch.ones(10))
            step = flatten(defense.direction(state, sent, ups, cohort, Rng(t)).step).float()
            truth = torch.stack([flatten(grad(defense.task.loss)(state.params, b.x[0], b.y[0])) for b in batches]).mean(
                0
            )
            values.append(cosine(step, truth))
        found[perturbations] = sum(values) / len(values)
    n = defense.n
    assert found["shared"] == pytest.approx(math.sqrt(5 / (n + 5)), rel=0.25)
    assert found["client"] > 1.8 * found["shared"]


def test_a_rule_takes_the_differences():
    """The median over clients of each ΔL_k, which costs C·K numbers."""
    defense = make(directions=8, rule=Median(None))
    state = start(defense)
    sent, _, ups, _, _ = one_round(defense, state)
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    step = flatten(defense.direction(state, sent, ups, cohort, Rng(0)).step)
    expected = flatten(defense.estimate(int(sent.down["seed"]), ups[DIFFERENCES].median(0).values))
    assert torch.allclose(step, expected, rtol=1e-5)


# -- the average that is deployed -----------------------------------------------------------------------


def test_the_average_follows_its_decay():
    """W̄ ← d W̄ + (1 − d) W; with warm-up 2/11, 3/12, … as the released code's library has it."""
    for options, decays in (
        ({"ema_warmup": False, "ema": 0.9}, [0.9, 0.9, 0.9]),
        ({"ema": 0.2}, [2 / 11, 0.2, 0.2]),
        ({"ema": None}, [0.0, 0.0, 0.0]),
    ):
        defense = make(directions=4, **options)
        state = start(defense)
        average = state.params
        for t, d in enumerate(decays):
            state = one_round(defense, state, t)[-1]
            average = combine(d, average, 1 - d, state.params)
            got = flatten(defense.deployed(state))
            assert torch.allclose(got, flatten(average), atol=1e-7)


def test_the_average_by_steps():
    """As many averages as a client takes steps; 0.995 a step is 0.995⁵ over five of them."""
    defense = make(directions=3, ema_warmup=False, ema_per="step", sizes=(20, 20), schedule={"local_epochs": 1})
    state = start(defense)
    after = one_round(defense, state)[-1]
    expected = combine(0.995**5, state.params, 1 - 0.995**5, after.params)
    assert torch.allclose(flatten(defense.deployed(after)), flatten(expected), atol=1e-7)


def test_clip_shortens_to_the_largest_entry():
    free, cut_ = make(directions=4), make(directions=4, clip=0.01)
    a, b = (flatten(d.estimate(5, torch.tensor([1e-4, -2e-4, 3e-4, 1e-5]))) for d in (free, cut_))
    assert float(b.abs().max()) == pytest.approx(0.01)
    assert cosine(a, b) == pytest.approx(1.0)
    assert torch.equal(flatten(make(directions=4, clip=1e3).estimate(5, torch.ones(4) * 1e-4)),
                       flatten(free.estimate(5, torch.ones(4) * 1e-4)))  # fmt: skip


# -- the epoch level ------------------------------------------------------------------------------------


def test_local_epochs_step_on_estimates():
    """Against the loop written out with torch's own Adam."""
    settings = {"local_epochs": 2, "client_optimizer": "adam", "adam_beta2": 0.99, "lr": 0.01}
    defense = make(directions=6, precision="float64", optimizer_state="kept", schedule=settings)
    sent = defense.broadcast(start(defense), Rng(0))
    w = {n: sent.down[n].clone() for n in defense.like}
    leaves = {n: t.clone().requires_grad_() for n, t in w.items()}
    torchs = torch.optim.Adam(leaves.values(), lr=0.01, betas=(0.9, 0.99))
    memory = {}
    for t in range(2):
        batch = drawn(defense, t)
        up, memory = defense.client({**w, "seed": sent.down["seed"]}, batch, memory, {})
        for s in range(len(batch.x)):
            at = defense.seed_of_step(int(sent.down["seed"]), s)
            now = {n: leaf.detach() for n, leaf in leaves.items()}
            g = defense.estimate(at, defense.differences(now, batch.x[s], batch.y[s], at, defense.options.directions))
            for n, leaf in leaves.items():
                leaf.grad = g[n].float()
            torchs.step()
        w = combine(1.0, w, -1.0, up)
        found, expected = flatten(w), torch.cat([leaf.detach().flatten() for leaf in leaves.values()])
        assert torch.allclose(found, expected, atol=2e-4)  # Adam doubles the noise of single precision at small entries
    assert int(memory["steps"]) == 2 * len(batch.x)
    fresh = make(directions=6, schedule=settings).client(sent.down, drawn(defense), {}, {})[1]
    assert fresh == {}


# -- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "schedule", "named"),
    [
        ({"min_directions": 200}, {}, "min_directions"),
        ({"law": True, "sigma": 1e-3}, {}, "sigma"),
        ({"law": True, "scheme": "central"}, {}, "scheme"),
        ({"law": True, "precision": "float64"}, {}, "precision"),
        ({"law": True}, {"local_epochs": 1}, "law"),
        ({"ema": None, "ema_warmup": False}, {}, "ema_warmup"),
        ({"ema_per": "step"}, {}, "ema_per"),
        ({"optimizer_state": "kept"}, {}, "optimizer_state"),
        ({"optimizer_state": "kept"}, {"local_epochs": 1}, "optimizer_state"),
        ({"downlink": "scalars"}, {"local_epochs": 1}, "downlink"),
        ({"downlink": "scalars"}, {"participation": 0.4}, "downlink"),
        ({"downlink": "scalars", "perturbations": "client"}, {}, "downlink"),
    ],
)
def test_contradictions_are_refused(options, schedule, named):
    with pytest.raises(UserError, match=f"defense baffle: option '{named}' is "):
        make(schedule=schedule, **options)


# -- a client's memory ----------------------------------------------------------------------------------


def peak(defense, rounds=1):
    """Bytes that the harness counts for a client, at most."""
    state, memories, most = start(defense), [{}, {}], 0
    batch = drawn(defense)
    for t in range(rounds):
        sent = defense.broadcast(state, Rng(t))
        most = max(most, client_peak(defense, sent.down, batch, memories[0], {}))
        ups, memories = defense.clients(sent.down, [batch, batch], memories, [{}, {}])
        state = defense.aggregate(state, sent, ups, Cohort((0, 1), torch.tensor([0.5, 0.5])), Rng(t))
    return most


def test_a_client_slices_its_work_to_fit_its_memory():
    """Less memory, the same differences; too little is refused, and says what is needed."""
    wide = {"batch_size": 16}
    whole = make(cnn(), (1, 8, 8), directions=6, precision="float64", schedule=wide)
    needed = peak(whole)
    tight = make(cnn(), (1, 8, 8), directions=6, precision="float64", schedule={**wide, "client_memory": needed * 8e-7})
    assert peak(tight) <= 0.8 * needed
    sent = whole.broadcast(start(whole), Rng(0))
    a, b = (d.clients(sent.down, [drawn(whole)], [{}], [{}])[0][DIFFERENCES] for d in (whole, tight))
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-9)
    with pytest.raises(UserError, match=r"option 'client-memory' is .* at least "):
        make(cnn(), (1, 8, 8), directions=6, schedule={**wide, "client_memory": 1e-6})


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ({}, {}),
        ({"downlink": "scalars"}, {}),
        ({"downlink": "scalars"}, {"server_optimizer": "adam"}),
        ({}, {"local_epochs": 1, "client_optimizer": "adam"}),
        ({"optimizer_state": "kept"}, {"local_epochs": 1, "client_optimizer": "adam"}),
    ],
)
def test_a_limit_holds_in_later_rounds_too(options, schedule):
    """With what a client keeps: the model that it rebuilds, the server's moments, its own."""
    wide = {"batch_size": 4, **schedule}
    with pytest.raises(UserError, match="at least ") as refused:
        make(mlp((784, 128, 3)), (784,), directions=6, schedule={**wide, "client_memory": 1e-6}, **options)
    least = float(re.search(r"at least ([\d.]+)", str(refused.value))[1])
    tight = make(mlp((784, 128, 3)), (784,), directions=6, schedule={**wide, "client_memory": least}, **options)
    needed = peak(tight, rounds=3)
    assert needed <= least * 1e6
    assert needed > 0.7 * least * 1e6  # what is refused could not have been done in much less


@pytest.mark.parametrize("level", [{}, {"local_epochs": 1}])
def test_a_client_alone_holds_one_direction_at_a_time(level):
    """Though dense chains and the estimate are faster with several, W + δ, δ and what a step makes is all it needs."""
    defense = make(mlp((784, 128, 3)), (784,), directions=40, schedule={"batch_size": 4, **level})
    assert peak(defense) < (8 if level else 4.5) * 4 * defense.n
    assert peak(defense) < peak_of_clients(defense)


def peak_of_clients(defense):
    sent, batch = defense.broadcast(start(defense), Rng(0)), drawn(defense)
    return peak_bytes(lambda: defense.clients(sent.down, [batch], [{}], [{}]))[1]


def test_memory_does_not_grow_with_k():
    few, many = (peak(make(cnn(), (1, 8, 8), directions=k)) for k in (10, 200))
    assert many - few <= 16 * 190  # the results themselves
