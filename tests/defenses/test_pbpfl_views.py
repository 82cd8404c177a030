"""What each party makes of PBPFL: γ, the canonical form, one mask for three uploads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pbpfl_play import cnn, make, mean_gradient, mlp, play, relative, start
from torch import nn
from torch.func import vmap

from fedarena.attacks.unmask import Masked, gamma_from_columns, gamma_from_labels, gammas_from_two
from fedarena.batch import Batch
from fedarena.defense import Cohort
from fedarena.defenses import pbpfl_client
from fedarena.defenses.pbpfl_client import directions, hidden, reading_the_input
from fedarena.defenses.pbpfl_wire import GAMMA, GRADIENT, R_A, UPLOADS
from fedarena.positive_scaling import canonical
from fedarena.rng import Rng
from fedarena.summation import sum_up
from fedarena.tensors import combine, flatten, row
from fedarena.threat import NotApplicable, Threat
from fedarena.transcript import cut, weights

MODELS = [(mlp, (12,)), (cnn, (1, 8, 8))]


def shard(defense, n=300, seed=9):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(1, n, *defense.task.input_shape, generator=g, dtype=torch.float64)
    return Batch(x, torch.randint(0, 3, (1, n), generator=g))


def views(defense, rounds, party, form="adaptive", victims=None):
    threat = Threat(party, form)
    seen = cut(rounds, threat, shard(defense) if party == "client" else None)
    return defense.readings(threat, seen, range(len(rounds)) if victims is None else victims)


def cosine(a, b):
    return float(torch.nn.functional.cosine_similarity(flatten(a), flatten(b), dim=0))


def one_hot(batch):
    x, y = batch.images()
    return x, torch.nn.functional.one_hot(y, 3).to(x)


# -- server and eavesdropper ------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_server_has_the_exact_gradient(model, shape):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 2)
    for form, name in (("paper", "gradient"), ("adaptive", "upload")):
        (reading,) = views(defense, rounds, "server", form)
        assert reading.name == name
        for o, r in zip(reading.observations, rounds, strict=True):
            victim = r.batches[o.clients[0]]
            assert o.clients == (1,)
            plain = torch.func.grad(defense.task.loss)(r.params, *victim.images())
            assert relative(o.estimate, plain) <= 1e-9
            assert relative(o.simulate(*one_hot(victim)), o.target) <= 1e-9


@pytest.mark.parametrize("form", ["paper", "adaptive"])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_eavesdropper_simulates_without_any_secret(model, shape, form):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 1)
    (reading,) = views(defense, rounds, "eavesdropper", form)
    (o,) = reading.observations
    assert relative(o.simulate(*one_hot(rounds[0].batches[1])), o.target) <= 1e-9
    assert relative(o.simulate(*one_hot(rounds[0].batches[0])), o.target) > 0.01
    own = {n: t[1] for n, t in rounds[0].ups.items()}
    if form == "paper":
        assert all(torch.equal(o.target[n], own[GRADIENT + n]) for n in o.target)


def test_uploads_are_unmixed_and_brought_to_one_length():
    defense = make(sizes=(8, 12), gamma_scale=100)
    rounds, _ = play(defense, 1)
    (reading,) = views(defense, rounds, "server")
    (o,) = reading.observations
    plain = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())
    seen = {n.removeprefix(GRADIENT): t for n, t in o.target.items() if n.startswith(GRADIENT)}
    masks = defense.factors(rounds[0].secret)
    true = {n: plain[n] / masks[n] for n in seen}
    length = float(flatten(true).norm())
    assert relative(seen, {n: t / length for n, t in true.items()}) <= 1e-9
    for kind in UPLOADS:
        assert float(flatten({n: t for n, t in o.target.items() if n.startswith(kind)}).norm()) == pytest.approx(1.0)


def test_what_the_eavesdropper_overhears_is_right_in_the_output_bias():
    defense = make(nn.Sequential(nn.Linear(12, 200), nn.ReLU(), nn.Linear(200, 3)), sizes=(8, 12), decades=1.0)
    rounds, _ = play(defense, 1)
    truth = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())["2.bias"]
    ((paper,),), ((adaptive,),) = (
        [r.observations for r in views(defense, rounds, "eavesdropper", form)] for form in ("paper", "adaptive")
    )
    assert cosine({"b": adaptive.estimate["2.bias"]}, {"b": truth}) > 0.9
    assert cosine({"b": paper.estimate["2.bias"]}, {"b": truth}) < 0.9


def test_one_sample_shows_the_server_its_features_and_label():
    """σ of the last layer is α r_a hᵀ, whose columns sum to r_a α²; and the rest of the gradient is (y − ȳ) hᵀ."""
    defense = make(mlp(bias=False), sizes=(1, 1), schedule={"batch_size": 1})
    (r,), _ = play(defense, 1)
    _, params = defense.open(r.down), r.params
    sigma = r.ups["sigma.4.weight"][0]
    along = r.down[R_A] @ sigma / r.down[R_A].square().sum()  # α h, masked
    alpha = along.sum().sqrt()
    h = along / alpha * defense.factors(r.secret)["4.weight"][0]  # 1/r_j takes the mask off
    truth = defense.task.model[:-1]
    x, y = r.batches[0].images()
    plain = torch.func.functional_call(truth, {n: p for n, p in params.items() if not n.startswith("4")}, (x,))
    assert torch.allclose(h, plain[0])
    gradient = row(defense.recover(Sent(r), r.ups)[0], 0)["4.weight"]
    residual = gradient @ h / h.square().sum()
    target = params["4.weight"] @ h - residual
    assert torch.allclose(target, torch.nn.functional.one_hot(y, 3)[0].double(), atol=1e-9)
    (reading,) = views(defense, [r], "server", victims=[0])
    (o,) = reading.observations
    x, y = r.batches[1].images()
    error = defense.task.outputs(params, x)[0] - torch.nn.functional.one_hot(y, 3)[0]
    assert torch.allclose(o.output_gradient["4.bias"], error)
    assert views(defense, [r], "eavesdropper")[0].observations[0].output_gradient is None


class Sent:
    def __init__(self, r):
        self.down, self.secret = r.down, r.secret


# -- one mask for three uploads ---------------------------------------------------------------------------


def masked_round(defense, spread):
    """A round whose uploads were summed: what the federation writes down."""
    assert defense.secure is not None
    (r,), _ = play(defense, 1)
    cohort = Cohort(r.participants, weights(defense.task.sizes, r.participants).double())
    summed = sum_up(defense.secure, r.ups, cohort, Rng(3))
    assert float((summed.wire - summed.wire.mean(0)).abs().mean()) > spread / 4
    return replace(r, wire=summed.wire, mean=summed.mean, summed=summed.clients)


def secured(gamma="uniform", repeat=3, model=None, **options):
    name = "pbpfl+zero-sum"
    return make(model or mlp(), sizes=(8, 12, 20), name=name, gamma=gamma, repeat=repeat, spread=10.0, **options)


def test_a_shared_mask_that_gamma_cancels_hides_nothing_from_the_server():
    defense = secured("cancelling")
    r = masked_round(defense, 10.0)
    readings = {reading.name: reading for reading in views(defense, [r], "server")}
    assert list(readings) == ["upload", "shared mask", "cancelled"]
    (o,) = readings["cancelled"].observations
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    assert o.clients == (1,)
    assert relative(o.estimate, plain) <= 1e-6
    (whole,) = readings["upload"].observations
    assert whole.clients == (0, 1, 2)
    assert relative(whole.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_a_shared_mask_leaves_differences_in_clear(party):
    defense = secured()
    r = masked_round(defense, 10.0)
    readings = {reading.name: reading for reading in views(defense, [r], party)}
    assert list(readings) == ["upload", "shared mask"]
    (o,) = readings["shared mask"].observations
    assert o.clients == (1,)
    assert relative(o.simulate(*one_hot(r.batches[1])), o.target) <= 1e-6
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    error = relative({"4.bias": o.output_gradient["4.bias"]}, {"4.bias": plain["4.bias"]})
    assert error <= (1e-6 if party == "server" else 0.5)  # an eavesdropper has but one broadcast here
    assert relative(o.simulate(*one_hot(r.batches[0])), o.target) > 0.01


@pytest.mark.parametrize("gamma", ["uniform", "cancelling"])
def test_independent_masks_leave_the_sum_only(gamma):
    defense = secured(gamma, repeat=1)
    r = masked_round(defense, 10.0)
    (reading,) = views(defense, [r], "server")
    (o,) = reading.observations
    assert (reading.name, o.clients) == ("upload", (0, 1, 2))
    assert relative(o.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6
    batches = [one_hot(b) for b in r.batches]
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    assert relative(o.simulate(x, y), o.target) <= 1e-6


# -- a client ---------------------------------------------------------------------------------------------


def trained(defense, steps=400):
    """A state whose model has learnt what labels there are."""
    data, state = shard(defense), start(defense)
    shade = data.y.double().view(1, -1, *[1] * len(defense.task.input_shape)) / 3
    data = replace(data, x=0.3 * data.x + shade)
    params = {n: p.clone().requires_grad_() for n, p in state.params.items()}
    optimizer = torch.optim.Adam(params.values(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        defense.task.loss(params, *data.images()).backward()
        optimizer.step()
    return replace(state, params={n: p.detach() for n, p in params.items()}), data


def opened(defense, down):
    return Masked(*defense.open(down), defense.additive)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_gamma_from_own_labels(model, shape):
    defense = make(model(), shape)
    state, data = trained(defense)
    errors = []
    for t in range(10):
        sent = defense.broadcast(state, Rng(t))
        found = gamma_from_labels(opened(defense, sent.down), defense.wide, defense.task.criterion, *data.images())
        errors.append(abs(found - float(sent.secret[GAMMA])))
    assert sorted(errors)[5] <= 1e-3, errors


def test_gamma_from_own_labels_is_least_squares():
    defense = make()
    sent, data = opened(defense, defense.broadcast(start(defense), Rng(0)).down), shard(defense)
    predicted, alpha = defense.wide(sent.params, data.images()[0])
    design = (alpha[:, None] * sent.r_a).flatten()[:, None]
    target = (predicted - torch.nn.functional.one_hot(data.y[0], 3)).flatten()[:, None]
    expected = torch.linalg.lstsq(design, target).solution
    found = gamma_from_labels(sent, defense.wide, defense.task.criterion, *data.images())
    assert found == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_gamma_from_columns_alone(bias):
    defense = make(nn.Sequential(nn.Linear(12, 400), nn.ReLU(), nn.Linear(400, 3, bias)))
    for t in range(5):
        sent = defense.broadcast(start(defense), Rng(t))
        assert gamma_from_columns(opened(defense, sent.down)) == pytest.approx(float(sent.secret[GAMMA]), abs=0.02)


@pytest.mark.parametrize("bias", [True, False])
def test_two_broadcasts_of_one_model_give_gamma_exactly(bias):
    defense = make(mlp(bias))
    state = start(defense)
    sent, other = defense.broadcast(state, Rng(0)), defense.broadcast(state, Rng(1))
    found = gammas_from_two(opened(defense, sent.down), opened(defense, other.down), defense.plan)
    assert found == pytest.approx([float(sent.secret[GAMMA]), float(other.secret[GAMMA])], abs=1e-9)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_two_broadcasts_err_by_one_update(model, shape):
    defense = make(model(), shape, schedule={"lr": 0.01})
    rounds, _ = play(defense, 2)
    a, b = (opened(defense, r.down) for r in rounds)
    truth = [float(r.secret[GAMMA]) for r in rounds]
    assert gammas_from_two(a, b, defense.plan) == pytest.approx(truth, abs=3e-3)


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
@pytest.mark.parametrize("history", [0, 1])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_disclosures(model, shape, history, party):
    defense = make(model(), shape, gamma_scale=20, schedule={"lr": 1e-3})
    state, data = trained(defense)
    rounds, _ = play(defense, 2, state=state)
    x = data.images()[0]
    plain = defense.task.outputs(rounds[1].params, x)

    def agreement(form):
        seen = cut(rounds[1 - history :], Threat(party, form), data if party == "client" else None)
        (found,) = defense.disclosures(Threat(party, form), seen, [1])
        assert set(found.params) == set(state.params)
        agree = (defense.task.outputs(found.params, x).argmax(1) == plain.argmax(1)).double().mean()
        return float(agree), found.secrets

    (naive, nothing), (adaptive, secrets) = agreement("paper"), agreement("adaptive")
    assert nothing == {}
    assert list(secrets) == [GAMMA]
    assert adaptive > naive
    if party == "client" or history:
        assert adaptive >= 0.99
    assert isinstance(defense.disclosures(Threat("server", "paper"), {}, [0]), NotApplicable)
    assert isinstance(defense.disclosures(Threat("client", "paper"), {}, [0]), NotApplicable)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_canonical_form_shows_the_update_of_the_hidden_layers(model, shape):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 4)
    (reading,) = views(defense, rounds, "client")
    assert (reading.name, len(reading.observations)) == ("first layer", 3)
    for o, r in zip(reading.observations, rounds, strict=False):
        before, after = (canonical(defense.plan, p) for p in (r.params, r.after))
        truth = hidden(defense, combine(1.0, before, -1.0, after))
        assert (o.clients, o.estimate_of) == ((1,), "canonical update")
        assert set(o.estimate) == set(truth)
        assert cosine(o.estimate, truth) >= 0.999
    (naive,) = views(defense, rounds, "client", "paper")
    plain = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())
    assert cosine(naive.observations[0].estimate, plain) < 0.5


@pytest.mark.parametrize("sizes", [(8, 8), (8, 12), (8, 12, 20)])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_row_directions_are_those_of_the_true_samples(model, shape, sizes, monkeypatch):
    """Up to the error of γ̂, which is put out of the way."""
    defense = make(model(), shape, sizes=sizes)
    rounds, _ = play(defense, 2)
    monkeypatch.setattr(pbpfl_client, "estimate_gamma", lambda defense, seen, t: float(rounds[t].secret[GAMMA]))
    (reading,) = views(defense, rounds, "client")
    (o,) = reading.observations
    assert o.clients == tuple(range(1, len(sizes)))
    share = torch.tensor(sizes[1:]).double() / sum(sizes[1:])
    each = [torch.func.grad(defense.task.loss)(rounds[0].params, *b.images()) for b in rounds[0].batches[1:]]
    ((bias, found),) = o.output_gradient.items()
    assert torch.allclose(found, sum(s * g[bias] for s, g in zip(share, each, strict=True)), atol=1e-6)
    others = [one_hot(b) for b in rounds[0].batches[1:]]
    x, y = (torch.cat(parts) for parts in zip(*others, strict=True))
    assert relative(o.simulate(x, y), o.target) <= 1e-6
    assert relative(o.simulate(x.flip(-1), y), o.target) > 0.01
    found = vmap(o.simulate)(torch.stack([x, x]), torch.stack([y, y]))
    assert torch.allclose(found["0"][0], found["0"][1])


def test_directions_forget_length_and_what_lies_along_the_row():
    c = {"a.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()}
    change = {"a.weight": torch.tensor([[5.0, 2.0], [0.0, 3.0]]).double()}
    found = directions(change, c, ("a",), {"a": torch.tensor([7.0, 1.0]).double()})["a"]
    assert found.tolist() == [[0.0, 7.0], [0.0, 0.0]]


def test_a_client_needs_two_rounds_and_company():
    defense = make(sizes=(8, 12))
    rounds, _ = play(defense, 2)
    assert isinstance(views(defense, rounds[:1], "client"), NotApplicable)
    alone = make(sizes=(8,))
    assert isinstance(views(alone, play(alone, 2)[0], "client"), NotApplicable)
    adam = make(sizes=(8, 12), schedule={"server_optimizer": "adam"})
    assert "Adam" in views(adam, play(adam, 2)[0], "client").reason
    krum = make(sizes=(8, 12, 20), name="pbpfl+krum")
    assert "rule" in views(krum, play(krum, 2)[0], "client").reason


def test_which_layers_read_the_input():
    assert reading_the_input(make().plan) == ("0",)
    single = make(nn.Sequential(nn.Linear(12, 3)), sizes=(8, 12))
    assert reading_the_input(single.plan) == ()
    assert "no layer" in views(single, play(single, 2)[0], "client").reason
