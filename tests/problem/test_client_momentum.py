"""Momentum of FedSGD's clients: by hand over rounds, the fast form against one client alone, and what is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import as_recorded
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, stack
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.client_momentum import MOMENTUM, sent_momenta, sent_momentum
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
    beta=st.floats(0.01, 0.99),
    have=st.lists(st.booleans(), min_size=1, max_size=6),
    apart=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_many_clients_are_each_one_alone(form: str, beta: float, have: list[bool], apart: bool, seed: int) -> None:
    schedule = Schedule(client_optimizer="momentum", momentum=beta, momentum_form=form)
    g = Rng(seed).torch()

    def drawn(prefix: str = "") -> Tensors:
        shapes = {"w": (3, 2), "b": (2,), "scalar": ()}
        return {prefix + name: torch.randn(s, generator=g, dtype=torch.float64) for name, s in shapes.items()}

    memories = [{"other": torch.tensor(7.0), **(drawn(MOMENTUM) if one else {})} for one in have]
    before = [{name: t.clone() for name, t in m.items()} for m in memories]
    gradients = [drawn() for _ in have]
    truth = [sent_momentum(one, m, schedule) for one, m in zip(gradients, memories, strict=True)]
    ups, after = sent_momenta(stack(gradients), memories, schedule, apart)
    for i, (up, kept) in enumerate(truth):
        torch.testing.assert_close(row(ups, i), up)
        torch.testing.assert_close(after[i], kept)
        assert all(torch.equal(memories[i][name], t) for name, t in before[i].items())
        shares = after[i][MOMENTUM + "w"].untyped_storage().data_ptr() == ups["w"].untyped_storage().data_ptr()
        assert shares != apart


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


TAKE_IT = ("fedavg",)
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
