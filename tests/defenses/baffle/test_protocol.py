"""BAFFLE: what a client does and sends, both wires, and what is refused."""

from __future__ import annotations

import math
from itertools import islice

import pytest
import torch
from helpers.baffle import SIZES, cosine, drawn, make, one_round, start
from helpers.dbcl import cnn, mlp
from torch.func import grad

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, nbytes, row, stack
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.directions import directions
from fedarena.defenses.baffle.protocol import DIFFERENCES
from fedarena.federation import compose
from fedarena.federation.secure_aggregation import sum_up
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

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
        ({"law": True, "perturbations": "client"}, 4 * 20 + 4),
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
    expected = defense.wire.estimate(seed, torch.stack(mean))
    assert torch.allclose(flatten(found), flatten(expected).float(), rtol=1e-4, atol=1e-6)


def test_float16_loses_differences_and_says_how_many():
    lost = {}
    for precision in ("float16", "float32"):
        defense = make(directions=50, precision=precision)
        state = one_round(defense, start(defense))[-1]
        lost[precision] = float(state.verdict["vanished"].mean())
    assert lost["float16"] > 0.5
    assert lost["float32"] < 0.05


@pytest.mark.parametrize("name", ["baffle", "baffle+pairwise-masks", "baffle+zero-sum", "baffle+median"])
@pytest.mark.parametrize("epochs", [0, 1])
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_whoever_sums_a_run_says_how_many_differences_vanished(name, epochs, precision):
    mask = {"bound": "100"} if "pairwise" in name else {}
    spec = compose.parse_defense(name, {"directions": "30", "precision": precision, **mask})
    defense = compose.make_defense(
        spec,
        Task(
            mlp(),
            input_shape=(12,),
            n_classes=3,
            sizes=SIZES,
            schedule=Schedule(rounds=2, batch_size=4, local_epochs=epochs, lr=1e-3),
        ),
    )
    state = start(defense)
    sent = defense.broadcast(state, Rng(0))
    batches, noises = [drawn(defense, c) for c in range(3)], [defense.draw(Rng(c)) for c in range(3)]
    ups, _ = defense.clients(sent.down, batches, [{}] * 3, noises)
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    if defense.secure is not None:
        received, cohort = sum_up(defense.secure, ups, cohort, Rng(1)).received()
    else:
        received = ups
    verdict = defense.aggregate(state, sent, received, cohort, Rng(2)).verdict
    marks = defense.warnings([{**verdict, **defense.diagnostics(sent, batches[0], noises[0], ups)}])
    if precision == "float32":
        assert marks == ()
        return
    (mark,) = marks
    told = float(mark.split("%")[0]) / 100
    if epochs:
        w = {n: sent.down[n] for n in defense.wire.like}
        found = defense._fast(w, batches[0].x[0], batches[0].y[0], *defense._drawn(sent.down, noises[0]))
    else:
        found = ups[DIFFERENCES]
    assert told == pytest.approx(float((found == 0).float().mean()), abs=1e-3)
    assert told > 0.5
    assert ("one client's first step" in mark) == bool(epochs)


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
        assert nbytes(sent.down) == (4 * 9 + 4 if t else 4 * defense.wire.n + 4)
        for memory in memories:
            built = {n: memory[f"model.{n}"] for n in defense.wire.like}
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
    z = torch.stack(list(islice(directions(int(sent.down["seed"]), defense.wire.n), 6)))
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
    n = defense.wire.n
    assert found["shared"] == pytest.approx(math.sqrt(5 / (n + 5)), rel=0.25)
    assert found["client"] > 1.8 * found["shared"]


def test_a_rule_takes_the_differences():
    """The median over clients of each ΔL_k, which costs C·K numbers."""
    defense = make(directions=8, rule=Median(None))
    state = start(defense)
    sent, _, ups, _, _ = one_round(defense, state)
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    step = flatten(defense.direction(state, sent, ups, cohort, Rng(0)).step)
    expected = flatten(defense.wire.estimate(int(sent.down["seed"]), ups[DIFFERENCES].median(0).values))
    assert torch.allclose(step, expected, rtol=1e-5)


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
