"""Momentum of FedSGD's clients: by hand over rounds, the fast form against one client alone, and what is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions, as_recorded
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.client_steps.momentum import MOMENTUM
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import usual_problem
from fedarena.problem.task import Batch, Task

FORMS = {"sum": 1.0, "ema": 0.25}
"""c by form, at β = .75."""


def problem(form: str = "sum", model: str = "mlp", clients: int = 3, **schedule: object) -> Problem:
    usual = {"rounds": 5, "batch_size": 4, "client_optimizer": "momentum", "momentum": 0.75, "momentum_form": form}
    training = {name: str(value) for name, value in {**usual, **schedule}.items()}
    given = {"dataset": "digits", "model": model, "clients": str(clients), "partition": "dirichlet"}
    return build(usual_problem(given, {"training": training, "partition": {"min_size": "20"}}), 0)


def gradient(task: Task, params: Tensors, batch: Batch) -> torch.Tensor:
    leaves = {name: p.clone().requires_grad_() for name, p in params.items()}
    loss = task.loss(leaves, batch.x[0], batch.y[0])
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(leaves.values()))])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("participation", [1.0, 0.67])
@pytest.mark.parametrize("model", ["mlp", "lenet-dlg"])
def test_uploads_are_momenta_by_hand(form: str, participation: float, model: str) -> None:
    """m is kept through the rounds in which a client is not sampled, and begins at 0."""
    p = problem(form, model, participation=participation, lr=0.3)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    run = federation.run(defense, p, Rng(0).child("federation"), watch=range(5))
    missed = {c for r in run.rounds for c in range(3) if c not in r.participants}
    assert bool(missed) == (participation < 1)
    kept = {c: torch.zeros(len(flatten(p.init))) for c in range(3)}
    for r in run.rounds:
        ups = rows(r.ups)
        for i, client in enumerate(r.participants):
            kept[client] = 0.75 * kept[client] + FORMS[form] * gradient(p.task, r.params, r.batches[i])
            torch.testing.assert_close(ups[i], kept[client], rtol=1e-5, atol=1e-6)
        weights = torch.tensor([float(p.task.sizes[c]) for c in r.participants])
        step = 0.3 * (weights / weights.sum()) @ torch.stack([kept[c] for c in r.participants])
        torch.testing.assert_close(flatten(r.after), flatten(r.params) - step, rtol=1e-5, atol=1e-6)


def test_one_client_is_torch_s_sgd_with_momentum() -> None:
    """The form `sum`: a single client's federation is torch.optim.SGD on its batches."""
    p = problem(clients=1, rounds=4, batch_size=8, lr=0.2, momentum=0.9)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    run = federation.run(defense, p, Rng(0).child("federation"), watch=range(4))
    params = {name: t.clone().requires_grad_() for name, t in p.init.items()}
    optimizer = torch.optim.SGD(list(params.values()), lr=0.2, momentum=0.9)
    for r in run.rounds:
        optimizer.zero_grad()
        p.task.loss(params, r.batches[0].x[0], r.batches[0].y[0]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    torch.testing.assert_close(flatten(run.params), flatten(params).detach(), rtol=1e-5, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    form=st.sampled_from(list(FORMS)),
    model=st.sampled_from(["mlp", "lenet-dlg"]),
    have=st.lists(st.booleans(), min_size=1, max_size=7),
    participation=st.sampled_from([1.0, 0.5]),
    rounds=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)
def test_many_clients_are_each_one_alone(
    form: str, model: str, have: list[bool], participation: float, rounds: int, seed: int
) -> None:
    """The fast forms over rounds, with clients that took part before and others that did not."""
    schedule = Schedule(
        batch_size=3, client_optimizer="momentum", momentum=0.75, momentum_form=form, participation=participation
    )
    card = registry.find("model", model)
    architecture = card.load()(card.parse({"widths": "5"} if model == "mlp" else {}))
    module, g = architecture.module((1, 8, 8), 4), Rng(seed).torch()
    start = {name: t.double() for name, t in architecture.init(module, g).items()}
    task = Task(module, input_shape=(1, 8, 8), n_classes=4, sizes=(9,) * len(have), schedule=schedule)
    defense = FedAvg(NoOptions(), task)
    earlier = {MOMENTUM + name: torch.randn(t.shape, generator=g, dtype=torch.float64) for name, t in start.items()}
    memories = [{"other": torch.tensor(7.0), **(earlier if one else {})} for one in have]
    alone = list(memories)
    for _ in range(rounds):
        x = torch.rand(len(have), 1, 3, 1, 8, 8, generator=g, dtype=torch.float64)
        batches = [Batch(one, torch.randint(4, (1, 3), generator=g)) for one in x]
        given_before = [{name: t.clone() for name, t in m.items()} for m in memories]
        ups, after = defense.clients(start, batches, memories, [{}] * len(have))
        for m, before in zip(memories, given_before, strict=True):
            assert all(torch.equal(m[name], t) for name, t in before.items())
        for i, batch in enumerate(batches):
            up, alone[i] = defense.client(start, batch, alone[i], {})
            torch.testing.assert_close(row(ups, i), up)
            torch.testing.assert_close(after[i], alone[i])
        memories = after


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_memories_share_the_uploads_only_where_all_clients_take_part(participation: float) -> None:
    """A client that is seldom sampled must not keep the uploads of all others of its last round in memory."""
    p = problem(participation=participation)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    ups, after = defense.clients(p.init, [p.batch(0, Rng(1)), p.batch(1, Rng(2))], [{}, {}], [{}, {}])
    for name, t in ups.items():
        shared = after[1][MOMENTUM + name].untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
        assert shared == (participation == 1)


def test_a_gradient_kept_for_all_rounds_gives_the_expected_upload() -> None:
    """c·g/(1 − β), which the momentum of equal gradients comes near to."""
    p = problem("ema")
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    batch, memory = p.batch(0, Rng(1)), {}
    for _ in range(60):
        up, memory = defense.client(p.init, batch, memory, {})
    torch.testing.assert_close(defense.expected_upload(p.init, *batch.images()), up, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(flatten(up), gradient(p.task, p.init, batch), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_local_steps_have_both_forms(form: str) -> None:
    """One local epoch of one client, by hand."""
    p = problem(form, local_epochs=1, rounds=1, lr=0.05)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    (r,) = federation.run(defense, p, Rng(0).child("federation"), watch=range(1)).rounds
    params, m, batch = dict(p.init), torch.zeros(len(flatten(p.init))), r.batches[0]
    for t in range(len(batch.x)):
        g = gradient(p.task, params, Batch(batch.x[t : t + 1], batch.y[t : t + 1]))
        m = 0.75 * m + FORMS[form] * g
        parts = m.split([w.numel() for w in params.values()])
        params = {name: w - 0.05 * part.reshape(w.shape) for (name, w), part in zip(params.items(), parts, strict=True)}
    torch.testing.assert_close(flatten(row(r.ups, 0)), flatten(p.init) - flatten(params), rtol=1e-3, atol=1e-5)


def test_the_default_form_is_in_no_record() -> None:
    assert "momentum_form" not in as_recorded(Schedule())
    assert as_recorded(Schedule(client_optimizer="momentum", momentum_form="ema"))["momentum_form"] == "ema"


@pytest.mark.parametrize(
    ("given_schedule", "says"),
    [
        ({"client_optimizer": "adam"}, "'client_optimizer' is adam, .*allowed with local-epochs 0: sgd, momentum"),
        ({"client_optimizer": "momentum", "momentum": 0.0}, "'momentum' is 0, .*allowed here: above 0"),
        (
            {"client_optimizer": "momentum", "momentum": 0.0, "momentum_form": "ema", "local_epochs": 1},
            "'momentum' is 0, .*momentum_form do nothing",
        ),
    ],
)
def test_settings_that_do_nothing_are_refused(given_schedule: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        Schedule(**given_schedule).check((10,))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


TAKE_IT = ("ats", "d-sgd", "dbcl-peers", "fedavg")
"""The protocols whose clients can send momenta."""


def test_every_other_protocol_refuses_and_says_why() -> None:
    p = problem(loss="mse", batch_size=20, participation=1.0)
    for name in registry.registries()["defense"].names():
        card = registry.find("defense", name)
        if name in TAKE_IT:
            card.load()(card.parse({}), p.task)
            continue
        with pytest.raises(UserError, match=r"'client_optimizer' is momentum, allowed .*sgd, because") as refused:
            card.load()(card.parse({}), p.task)
        assert "\n" not in str(refused.value)
