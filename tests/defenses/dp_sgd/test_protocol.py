"""DP-SGD against Algorithm 1 of the two-stage paper written out, its noise, its accounting and its options."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.dbcl import cnn, mlp, parameters, samples
from torch.func import grad, vmap

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row, rows, stack
from fedarena.core.threat import Threat
from fedarena.defenses.dp_sgd import accountant
from fedarena.defenses.dp_sgd.card import Options
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

QUIET = {"epsilon": None}


def make(model=None, shape=(12,), sizes=(40, 40, 40), rounds=20, batch_size=4, lr=0.3, **options):
    task = Task(
        model or mlp(),
        input_shape=shape,
        n_classes=3,
        sizes=sizes,
        schedule=Schedule(rounds=rounds, batch_size=batch_size, lr=lr),
    )
    return DPSGD(Options(**options), task)


def drawn(defense, n, seed=0, dtype=torch.float64):
    """A batch of n samples."""
    g = Rng(seed).torch()
    shape = defense.task.input_shape
    return Batch(torch.rand(1, n, *shape, generator=g, dtype=dtype), torch.randint(0, 3, (1, n), generator=g))


def test_a_search_for_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"option 'search' is code, allowed where no σ is searched for .*: exact"):
        make(epsilon=None, noise=1.0, search="code")
    with pytest.raises(UserError, match=r"option 'base_epsilon' is 2, allowed without noise .*: none"):
        make(epsilon=None, base_epsilon=2.0)
    found = [make(epsilon=None, noise=1.0, base_epsilon=0.1, search=how).step_size for how in ("exact", "code")]
    assert found[0] != found[1]


@pytest.mark.parametrize("bound", ["clip", "normalise"])
def test_one_vector_is_algorithm_1_s_list_of_slots(bound):
    """b slots, each set to the upload after every round, against the memory of one vector."""
    defense = make(bound=bound, momentum=0.1, clip=0.4, noise=0.5, epsilon=None)
    params = parameters(defense.task.model, 0, torch.float64)
    slots = [torch.zeros_like(flatten(params))] * 4
    memory = {}
    for t in range(4):
        batch = drawn(defense, 4, t)
        noise = {n: z.double() for n, z in defense.draw(Rng(t)).items()}
        total = noise["noise"].clone()
        for j, (x, y) in enumerate(zip(*batch.images(), strict=True)):
            slots[j] = 0.9 * flatten(grad(defense.task.loss)(params, x[None], y[None])) + 0.1 * slots[j]
            size = slots[j].norm()
            total += slots[j] * (0.4 / size if bound == "normalise" or size > 0.4 else 1.0)
        up, memory = defense.client(params, batch, memory, noise)
        assert torch.allclose(flatten(up), total / 4, rtol=1e-9, atol=1e-12)
        slots = [total / 4] * 4


@pytest.mark.parametrize(("model", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])
def test_many_clients_are_each_one_alone(model, shape):
    defense = make(model(), shape, momentum=0.3, bound="normalise")
    params = parameters(defense.task.model, 0, torch.float64)
    sizes = (4, 0, 7, 1)
    batches = [drawn(defense, n, i) for i, n in enumerate(sizes)]
    noises = [{n: z.double() for n, z in defense.draw(Rng(9).child(i)).items()} for i in range(4)]
    memories = [{}] * 4
    for _ in range(3):
        memories[3] = {}  # a client that never took part before
        alone = [defense.client(params, *one) for one in zip(batches, memories, noises, strict=True)]
        ups, memories = defense.clients(params, batches, memories, noises)
        assert torch.allclose(rows(ups), rows(stack([up for up, _ in alone])), rtol=1e-9, atol=1e-12)
        for mine, (_, theirs) in zip(memories, alone, strict=True):
            assert torch.allclose(mine["previous"], theirs["previous"], rtol=1e-9, atol=1e-12)


def test_an_empty_batch_uploads_noise_alone():
    defense = make(momentum=0.1)
    params = parameters(defense.task.model, 0)
    noise = defense.draw(Rng(0))
    up, _ = defense.client(params, drawn(defense, 0, dtype=torch.float32), {}, noise)
    assert torch.equal(flatten(up), noise["noise"] / 4)


def test_noise_has_its_standard_deviation():
    defense = make(mlp((12, 300, 3)), clip=2.0, noise=1.5, epsilon=None)
    params = parameters(defense.task.model, 0)
    up, _ = defense.client(params, drawn(defense, 0, dtype=torch.float32), {}, defense.draw(Rng(1)))
    assert defense.noise_std == pytest.approx(1.5 * 2.0 / 4)
    assert float(flatten(up).std()) == pytest.approx(defense.noise_std, rel=0.05)
    assert not torch.equal(defense.draw(Rng(1))["noise"], defense.draw(Rng(2))["noise"])


def test_without_a_target_there_is_no_noise():
    defense = make(**QUIET)
    assert (defense.draw(Rng(0)), defense.noise_std, defense.guarantees()) == ({}, 0.0, {"sigma": 0.0})
    # With a bound that no gradient reaches this is plain FedSGD.
    wide = make(**QUIET, clip=1e6)
    params, batch = parameters(wide.task.model, 0, torch.float64), drawn(wide, 4)
    up, memory = wide.client(params, batch, {}, {})
    assert memory == {}
    truth = grad(wide.task.loss)(params, batch.x[0], batch.y[0])
    assert torch.allclose(flatten(up), flatten(truth), rtol=1e-9)


def test_guarantees_are_of_the_smallest_client_and_the_real_sampling():
    defense = make(sizes=(40, 80), epsilon=3.0, rounds=30)
    promise = defense.guarantees()
    assert (promise["q"], promise["delta"], promise["rounds"]) == (0.1, pytest.approx(40**-1.1), 30)
    assert 3.0 * 0.999 < promise["epsilon_add_remove_tight"] <= 3.0 == promise["target_by_pld"]
    assert promise["epsilon_add_remove"] == accountant.epsilon(promise["sigma"], promise["delta"], 0.1, 30)
    assert promise["epsilon_sensitivity_2"] > promise["epsilon_replace_one"] > promise["epsilon_add_remove_tight"]
    assert promise["epsilon_add_remove"] > promise["epsilon_add_remove_tight"]
    fixed = make(sizes=(40, 80), epsilon=3.0, rounds=30, sampling="fixed")
    assert (defense.sampling, fixed.sampling) == ("poisson", "fixed")
    assert fixed.sigma == defense.sigma
    assert set(fixed.guarantees()) == {
        *("sigma", "delta", "q", "rounds", "target_by_pld"),
        "epsilon_replace_one_fixed",
    }
    assert fixed.guarantees()["epsilon_replace_one_fixed"] > promise["epsilon_replace_one"]
    strict, loose = (make(delta=delta, epsilon=3.0, accounting="renyi").sigma for delta in (1e-6, 1e-3))
    assert strict > loose
    given = make(noise=1.7, epsilon=None).guarantees()
    assert given["sigma"] == 1.7
    assert not any(name.startswith("target") for name in given)
    other = [make(epsilon=3.0, rounds=30, **how).guarantees() for how in ({"accounting": "renyi"}, {"search": "code"})]
    assert [[name for name in promises if name.startswith("target")] for promises in other] == [
        ["target_by_renyi"],
        ["target_by_papers_code"],
    ]
    assert 3.0 * 0.999 < other[0]["epsilon_add_remove"] <= 3.0
    assert other[0]["sigma"] > defense.sigma
    texts = dict(find("defense", "dp-sgd").guarantees)
    made = {name for promises in (promise, fixed.guarantees(), *other) for name in promises}
    assert set(texts) == made - {"rounds"}, "the card says how each is printed"


def test_an_accounting_of_nothing_is_refused() -> None:
    for options in ({"epsilon": None, "noise": 1.0}, {"search": "code"}):
        with pytest.raises(UserError, match=r"option 'accounting' is renyi, allowed where no σ .*search=exact: tight"):
            make(accounting="renyi", **options)


def test_a_delta_that_protects_nobody_is_said() -> None:
    for delta, said in ((1 / 40, True), (0.1, True), (1 / 41, False), (None, False)):
        warnings = make(sizes=(40, 80), delta=delta, epsilon=None, noise=1.0).warnings([])
        assert bool(warnings) == said
        assert all("1/40 or more" in text for text in warnings)
    assert make(epsilon=None, delta=0.5).warnings([]) == ()


def test_a_delta_that_float64_cannot_tell_is_refused() -> None:
    assert find("defense", "dp-sgd").parse({"delta": "1e-12"}).delta == 1e-12
    with pytest.raises(UserError, match=r"option 'delta' is 1e-13, allowed: number or none in \[1e-12, 1\)") as error:
        find("defense", "two-stage").parse({"delta": "1e-13"})
    assert "\n" not in str(error.value)


def test_learning_rate_moves_with_the_noise():
    base = make(epsilon=2.0, base_epsilon=2.0)
    strict = make(epsilon=0.5, base_epsilon=2.0)
    assert base.step_size == pytest.approx(0.3)
    assert strict.step_size == pytest.approx(0.3 * base.sigma / strict.sigma)
    assert make(epsilon=0.5).step_size == 0.3
    params = parameters(strict.task.model, 0)
    state, ups = State(params), stack([params] * 2)
    sent = strict.broadcast(state, Rng(0))
    after = strict.aggregate(state, sent, ups, Cohort((0, 1), torch.ones(2)), Rng(0))
    assert torch.allclose(flatten(after.params), (1 - strict.step_size) * flatten(params))


def test_local_epochs_are_refused():
    with pytest.raises(UserError, match="option 'local-epochs' is 2"):
        DPSGD(
            Options(),
            Task(mlp(), input_shape=(12,), n_classes=3, sizes=(8,), schedule=Schedule(local_epochs=2, batch_size=4)),
        )


def test_noiseless_is_the_mean_of_bounded_gradients_whatever_their_number():
    defense = make(bound="normalise", clip=0.5)
    params, batch = parameters(defense.task.model, 0, torch.float64), drawn(defense, 10)
    each = vmap(lambda x, y: flatten(grad(defense.task.loss)(params, x[None], y[None])))(*batch.images())
    truth = 0.5 * torch.nn.functional.normalize(each, dim=1).mean(0)
    assert torch.allclose(flatten(defense.expected_upload(params, *batch.images())), truth, rtol=1e-9)


def test_a_party_on_the_wire_knows_the_momentum():
    defense = make(momentum=0.4, bound="normalise", noise=1e-9, epsilon=None)
    params = parameters(defense.task.model, 0)
    g = torch.Generator().manual_seed(0)
    batches = [samples((12,), defense.task.schedule, 4, 3, g) for _ in range(6)]
    memories, seen = [{}] * 3, {}
    for t in range(2):
        noises = [defense.draw(Rng(t).child(c)) for c in range(3)]
        ups, memories = defense.clients(params, batches[3 * t : 3 * t + 3], memories, noises)
        seen[t] = Seen(t, participants=(0, 1, 2), down=params, ups=ups)
    for party in ("server", "eavesdropper"):
        (reading,) = defense.readings(Threat(party, "adaptive"), seen, (0, 1))
        for t, o in enumerate(reading.observations):
            x, y = batches[3 * t + 1].images()
            guess = o.simulate(x, torch.nn.functional.one_hot(y, 3).float())
            assert torch.allclose(flatten(guess), flatten(o.target), atol=1e-6)
            assert torch.equal(flatten(o.target), flatten(row(seen[t].ups, 1)))
    (paper,) = defense.readings(Threat("server", "paper"), seen, (1,))
    assert not getattr(paper.observations[0].simulate, "memory", {})
    # A round that was not seen in between: the momentum is unknown.
    (blind,) = defense.readings(Threat("server", "adaptive"), {1: seen[1]}, (1,))
    assert not getattr(blind.observations[0].simulate, "memory", {})


def test_delta_of_the_paper():
    assert make(sizes=(3000,), batch_size=16, noise=1.0, epsilon=None).delta == pytest.approx(
        math.exp(-1.1 * math.log(3000))
    )


def test_a_client_reads_the_others_mean_in_the_server_s_own_step_size():
    """With base_epsilon the server's rate is public but not the schedule's."""
    defense = make(epsilon=0.5, base_epsilon=2.0, sizes=(40, 40))
    params = parameters(defense.task.model, 0)
    noises = [defense.draw(Rng(c)) for c in range(2)]
    ups, _ = defense.clients(params, [drawn(defense, 4, c, torch.float32) for c in range(2)], [{}] * 2, noises)
    state = State(params)
    after = defense.aggregate(state, defense.broadcast(state, Rng(0)), ups, Cohort((0, 1), torch.ones(2)), Rng(0))
    seen = {t: Seen(t, participants=(0, 1), down=p, own_up=row(ups, 0)) for t, p in enumerate((params, after.params))}
    (reading,) = defense.readings(Threat("client", "adaptive"), seen, (0,))
    assert torch.allclose(flatten(reading.observations[0].target), flatten(row(ups, 1)), rtol=1e-3, atol=1e-3)
