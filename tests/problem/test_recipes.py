"""Weight decay and changing learning rates against torch's own optimisers, and what they do to attackers' readings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, MultiStepLR

from fedarena.contracts.control import relative_error
from fedarena.contracts.defense import Defense, State
from fedarena.contracts.readings import all_readings
from fedarena.contracts.transcript import Round, cut
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import rounds
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem import client_steps
from fedarena.problem.local_training import upload
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import usual_problem
from fedarena.problem.task import Batch

ROUNDS = 10
RATES = [
    {},
    {"lr_schedule": "steps", "lr_steps": (0.3, 0.6), "lr_gamma": 0.5},
    {"lr_schedule": "cosine"},
]


def problem(clients: int = 1, model: str = "mlp", **training: object) -> Problem:
    """Digits, in double precision."""
    schedule = {"rounds": ROUNDS, "batch_size": 8, "lr": 0.1} | training
    texts = {name: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for name, v in schedule.items()}
    given = {"dataset": "digits", "model": model, "clients": str(clients)}
    built = build(usual_problem(given, {"training": texts}), seed=0)
    return replace(built, init={name: p.double() for name, p in built.init.items()})


def of_torch(module: nn.Module, optimizer: str, schedule: Schedule) -> tuple[Optimizer, LRScheduler | None]:
    """torch's optimiser and its scheduler, which steps once a round."""
    values, decay = list(module.parameters()), schedule.weight_decay
    made: Optimizer = (
        Adam(values, schedule.lr, betas=(0.9, schedule.adam_beta2), weight_decay=decay)
        if optimizer == "adam"
        else SGD(values, schedule.lr, momentum=schedule.momentum if optimizer == "momentum" else 0, weight_decay=decay)
    )
    if schedule.lr_schedule == "steps":
        milestones = [round(share * ROUNDS) for share in schedule.lr_steps]
        return made, MultiStepLR(made, milestones, schedule.lr_gamma)
    return made, CosineAnnealingLR(made, ROUNDS) if schedule.lr_schedule == "cosine" else None


def batches(of: Problem) -> Iterator[Batch]:
    """One batch a round of client 0."""
    for t in range(ROUNDS):
        batch = next(iter(of.batches([(0, Rng(t))], False)))
        yield Batch(batch.x.double(), batch.y)


def module_of(of: Problem) -> nn.Module:
    """The model at its initial parameters."""
    module = of.task.model.double()
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(of.init[name])
    return module


def played(defense: Defense, of: Problem) -> Tensors:
    """The parameters after all rounds of a federation with one client."""
    drawn = list(batches(of))
    return rounds.run(defense, of, Rng(0), draw=lambda t, client: drawn[t]).params


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_the_servers_steps_are_torchs(rate: dict[str, object], optimizer: str, decay: float) -> None:
    of = problem(server_optimizer=optimizer, weight_decay=decay, **rate)
    got, module = played(make_defense(parse_defense("fedavg"), of.task), of), module_of(of)
    steps, schedule = of_torch(module, optimizer, of.task.schedule)
    for batch in batches(of):
        steps.zero_grad()
        of.task.criterion.mean(module(batch.x[0]), batch.y[0]).backward()
        steps.step()
        if schedule is not None:
            schedule.step()
    assert relative_error(got, {name: p.detach() for name, p in module.named_parameters()}) < 1e-6


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_the_clients_steps_are_torchs(rate: dict[str, object], optimizer: str) -> None:
    """Optimisers of clients begin anew in each round."""
    of = problem(local_epochs=1, local_samples=32, client_optimizer=optimizer, weight_decay=0.05, **rate)
    got, module = played(make_defense(parse_defense("fedavg"), of.task), of), module_of(of)
    changing, schedule = of_torch(nn.Linear(1, 1), optimizer, of.task.schedule)  # for its rate alone
    for batch in batches(of):
        plain = replace(of.task.schedule, lr=changing.param_groups[0]["lr"], lr_schedule="constant")
        steps, _ = of_torch(module, optimizer, plain)
        for x, y in zip(batch.x, batch.y, strict=True):
            steps.zero_grad()
            of.task.criterion.mean(module(x), y).backward()
            steps.step()
        if schedule is not None:
            changing.step()  # of nothing, before the scheduler as torch wants it
            schedule.step()
    assert (
        relative_error(got, {name: p.detach() for name, p in module.named_parameters()}) < 1e-5
    )  # Adam divides by tiny gradients' sizes


@settings(max_examples=30, deadline=None)
@given(
    model=st.sampled_from(["mlp", "lenet-dlg"]),
    optimizer=st.sampled_from(["sgd", "momentum", "adam"]),
    decay=st.sampled_from([0.0, 1e-3, 0.3]),
    seed=st.integers(0, 1000),
)
def test_every_form_decays_as_one_client_alone(model: str, optimizer: str, decay: float, seed: int) -> None:
    of = problem(3, model, local_epochs=1, local_samples=24, client_optimizer=optimizer, weight_decay=decay)
    drawn = [Batch(b.x.double(), b.y) for b in of.batches([(c, Rng(seed).child("batch", c)) for c in range(3)], False)]
    got = client_steps.uploads(of.task, of.task.loss, of.init, drawn)
    for i, batch in enumerate(drawn):
        alone = upload(of.task.loss, of.init, batch, of.task.schedule)
        assert relative_error({name: t[i] for name, t in got.items()}, alone) < 1e-9


@pytest.mark.parametrize("law", ["balanced", "countsketch", "uniform", "gaussian"])
def test_a_sketched_client_decays_what_it_sees(law: str) -> None:
    """With a step of almost no gradient W S shrinks by lr·λ, as it does where W itself decays; in both forms."""
    of = problem(2, local_epochs=1, local_samples=8, weight_decay=0.5, lr=0.1)
    defense = make_defense(parse_defense("dbcl", {"hash": law}), of.task)
    down = defense.broadcast(State(of.init), Rng(3)).down
    drawn = [Batch(b.x.double(), b.y) for b in of.batches([(c, Rng(0).child("b", c)) for c in range(2)], False)]
    still = make_defense(parse_defense("dbcl", {"hash": law}), _without_decay(of).task)
    for protocol in (defense, still):
        many, _ = protocol.clients(down, drawn, [{}] * 2, [{}] * 2)
        for i, batch in enumerate(drawn):
            assert relative_error({n: t[i] for n, t in many.items()}, protocol.client(down, batch, {}, {})[0]) < 1e-9
    moved, (params, sketches) = defense.client(down, drawn[0], {}, {})[0], defense.wire.open(down)  # type: ignore[attr-defined]
    unmoved = still.client(down, drawn[0], {}, {})[0]
    for name, sketch in sketches.items():
        by_decay = sketch.apply(sketch.expand(moved[name] - unmoved[name]))
        torch.testing.assert_close(by_decay, 0.05 * params[name], rtol=1e-6, atol=1e-9)


def _without_decay(of: Problem) -> Problem:
    return replace(of, task=replace(of.task, schedule=replace(of.task.schedule, weight_decay=0.0)))


def test_warm_up_rises_in_proportion() -> None:
    schedule = Schedule(rounds=20, lr=0.4, warmup=0.2)
    assert [schedule.in_round(t).lr for t in range(6)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])
    usual = Schedule()
    assert usual.in_round(7) is usual


def test_steps_that_do_nothing_are_refused() -> None:
    with pytest.raises(UserError, match="lr_steps"):
        problem(lr_steps=(0.5,))
    with pytest.raises(UserError, match="lr_gamma"):
        problem(lr_gamma=0.5, lr_schedule="cosine")
    with pytest.raises(UserError, match="option 'lr_steps' is empty"):
        problem(lr_steps=(), lr_schedule="steps")
    with pytest.raises(UserError, match="option 'warmup' is"):
        problem(warmup=0.1)


@pytest.mark.parametrize("defense", ["fedavg", "baffle", "dbcl", "pbpfl", "pairwise-masks"])
@pytest.mark.parametrize("recipe", [{"lr_schedule": "cosine", "warmup": 0.4}, {"weight_decay": 0.2}])
def test_a_client_reads_the_others_upload_whatever_the_recipe(defense: str, recipe: dict[str, object]) -> None:
    """Where W is hidden, weight decay is told as the attack's limit."""
    loss = {"loss": "mse"} if defense == "pbpfl" else {}
    of = problem(3, **loss, **recipe)
    protocol = make_defense(parse_defense(defense), of.task)
    run = rounds.run(protocol, of, Rng(1), watch=range(ROUNDS))
    threat = Threat("client", "adaptive")
    readings = all_readings(protocol, threat, cut(run.rounds, threat, of.data_of(threat)), [4])
    if defense in ("dbcl", "pbpfl") and "weight_decay" in recipe:
        assert isinstance(readings, NotApplicable)
        assert "weight decay" in readings.reason
        return
    assert not isinstance(readings, NotApplicable)
    observation = readings[0].observations[0]
    true = _samples(run.rounds[4], observation.clients)
    assert relative_error(observation.target, observation.simulate(*true)) < 0.1  # a wrong rate is wrong by a third


def _samples(written: Round, clients: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The samples of these clients in a round, with labels as probabilities."""
    batches = [written.batches[written.participants.index(c)].images() for c in clients]
    labels = nn.functional.one_hot(torch.cat([y for _, y in batches]), 10)
    return torch.cat([x for x, _ in batches]).double(), labels.double()
