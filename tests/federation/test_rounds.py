"""The loop over rounds: what crosses, what is counted, what is written down."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import rounds as federation
from fedarena.problem.local_training import adam_step
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def make(clients: int = 3, partition: str = "iid", **schedule: Any) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "12"})
    split = registry.find("partition", partition).parse({})
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition=partition,
            clients=clients,
            model_options=model,
            partition_options=split,
            schedule=Schedule(**schedule),
        ),
        0,
    )


def play(problem: Problem, name: str = "fedavg", **kwargs: Any) -> federation.Run:
    card = registry.find("defense", name)
    return federation.run(card.load()(card.parse({}), problem.task), problem, Rng(0).child("federation"), **kwargs)


def assert_close_to(a: Tensors, b: Tensors) -> None:
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-5, atol=1e-6)


def test_fedsgd_is_one_gradient_step_on_the_pooled_batch() -> None:
    """Equal batches: the mean of clients' gradients, weighted by N_c, is the gradient of a weighted pool."""
    problem = make(rounds=1, batch_size=8, lr=0.5)
    run = play(problem, watch=range(1))
    (r,) = run.rounds
    sizes = torch.tensor(problem.task.sizes, dtype=torch.float)
    params = {n: p.clone().requires_grad_() for n, p in problem.init.items()}
    losses = [problem.task.loss(params, b.x[0], b.y[0]) for b in r.batches]
    pooled = sum((w / sizes.sum()) * loss for w, loss in zip(sizes, losses, strict=True))
    assert isinstance(pooled, Tensor)
    gradients = torch.autograd.grad(pooled, list(params.values()))
    assert_close_to(run.params, {n: p - 0.5 * g for (n, p), g in zip(problem.init.items(), gradients, strict=True)})


@pytest.mark.parametrize("client_optimizer", ["sgd", "momentum", "adam"])
def test_fedavg_is_the_weighted_mean_of_local_models(client_optimizer: str) -> None:
    """Against torch.optim, one client at a time."""
    problem = make(
        partition="dirichlet", rounds=1, batch_size=4, local_epochs=2, lr=0.05, client_optimizer=client_optimizer
    )
    run = play(problem, watch=range(1))
    (r,) = run.rounds
    total = {n: torch.zeros_like(p) for n, p in problem.init.items()}
    for client, batch in zip(r.participants, r.batches, strict=True):
        params = {n: p.clone().requires_grad_() for n, p in problem.init.items()}
        options: dict[str, Any] = {"lr": 0.05}
        if client_optimizer == "momentum":
            options["momentum"] = 0.9
        kind = torch.optim.Adam if client_optimizer == "adam" else torch.optim.SGD
        optimizer = kind(list(params.values()), **options)
        for x, y in zip(batch.x, batch.y, strict=True):
            optimizer.zero_grad()
            problem.task.loss(params, x, y).backward()
            optimizer.step()
        share = problem.task.sizes[client] / sum(problem.task.sizes)
        for n, p in params.items():
            total[n] += share * p.detach()
    for name in total:
        torch.testing.assert_close(run.params[name], total[name], rtol=1e-4, atol=2e-5)


def test_server_adam_agrees_with_torch() -> None:
    problem = make(rounds=5, batch_size=8, lr=0.01, server_optimizer="adam")
    run = play(problem, watch=range(5))
    params = [p.clone().requires_grad_() for p in problem.init.values()]
    optimizer = torch.optim.Adam(params, lr=0.01)
    sizes = torch.tensor(problem.task.sizes, dtype=torch.float)
    for r in run.rounds:
        for p, up in zip(params, r.ups.values(), strict=True):
            p.grad = torch.tensordot(sizes / sizes.sum(), up, dims=1)
        optimizer.step()
    assert_close_to(run.params, dict(zip(problem.init, [p.detach() for p in params], strict=True)))


def test_adam_step_starts_at_its_learning_rate() -> None:
    step, _ = adam_step(torch.tensor([3.0, -1e-3]), None, 1, 0.1)
    torch.testing.assert_close(step, torch.tensor([0.1, -0.1]), rtol=1e-4, atol=0)


def test_bytes_are_those_of_the_tensors() -> None:
    problem = make(rounds=2, batch_size=4)
    plain, sketched = play(problem), play(problem, "dbcl")
    n = 64 * 12 + 12 + 12 * 10 + 10
    assert plain.bytes_up == plain.bytes_down == 4 * n
    half = 32 * 12 + 12 + 12 * 10 + 10
    assert sketched.bytes_up == 4 * half
    assert sketched.bytes_down == 4 * half + 4


def test_participation_samples_that_share_and_weights_only_the_sampled() -> None:
    problem = make(clients=10, rounds=20, batch_size=4, participation=0.3)
    run = play(problem, watch=range(20))
    assert {len(r.participants) for r in run.rounds} == {3}
    assert len({r.participants for r in run.rounds}) > 5
    assert {c for r in run.rounds for c in r.participants} == set(range(10))


def test_only_watched_rounds_are_written() -> None:
    run = play(make(rounds=9, batch_size=4), watch=(2, 5))
    assert [r.index for r in run.rounds] == [2, 5]
    assert all(not torch.equal(r.params["out.weight"], r.after["out.weight"]) for r in run.rounds)


def test_evaluation_every_k_rounds_and_at_the_end() -> None:
    run = play(make(rounds=7, batch_size=4, eval_every=3))
    assert [p.rounds for p in run.curve] == [3, 6, 7]


def test_training_learns_and_can_stop_early() -> None:
    run = play(make(rounds=400, batch_size=16, lr=0.3, eval_every=20), stop=lambda p: p.accuracy >= 0.8)
    assert run.accuracy >= 0.8
    assert run.curve[-1].rounds < 400


def test_divergence_is_recorded() -> None:
    run = play(make(rounds=50, batch_size=4, lr=1e30))
    assert run.diverged_at is not None
    assert run.curve[-1].rounds == run.diverged_at + 1


def test_same_seed_same_run_other_seed_other_run() -> None:
    a, b = play(make(rounds=5, batch_size=4)), play(make(rounds=5, batch_size=4))
    assert all(torch.equal(a.params[n], b.params[n]) for n in a.params)
    model = registry.find("model", "mlp").parse({"widths": "12"})
    other = build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=3,
            model_options=model,
            schedule=Schedule(rounds=5, batch_size=4),
        ),
        1,
    )
    assert not torch.equal(a.params["out.weight"], play(other).params["out.weight"])


def test_global_generators_are_left_alone() -> None:
    state = torch.random.get_rng_state()
    play(make(rounds=2, batch_size=4), "dbcl")
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_batch_larger_than_a_shard_is_refused() -> None:
    with pytest.raises(UserError, match=r"batch-size.*is 200.*holds only 1\d\d samples"):
        make(clients=10, batch_size=200)


def test_a_client_optimiser_without_local_steps_is_refused() -> None:
    with pytest.raises(UserError, match="client_optimizer"):
        make(client_optimizer="adam")


def test_a_defense_may_keep_client_memory() -> None:
    """What a client returns as memory is what it is handed in its next round, and only it."""
    from fedarena.defenses.fedavg.protocol import FedAvg

    seen: list[tuple[int, ...]] = []

    class Counting(FedAvg):
        def clients(self, down: Tensors, batches: Any, memories: Any, noises: Any) -> tuple[Tensors, list[Tensors]]:
            if len(memories) == 3:  # not while one client's memory is measured
                seen.append(tuple(int(m["n"]) if m else 0 for m in memories))
            ups, _ = super().clients(down, batches, memories, noises)
            return ups, [{"n": (m["n"] if m else torch.zeros(())) + 1} for m in memories]

        def direction(self, state: Any, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
            return super().direction(state, sent, ups, cohort, rng)

    problem = make(rounds=3, batch_size=4)
    federation.run(Counting(None, problem.task), problem, Rng(0))
    assert seen == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]


def test_a_sampled_client_keeps_nothing_of_the_others_in_memory() -> None:
    """The tensors that it keeps are no rows of the uploads of its whole round, which would stay as long as it does."""
    problem = make(clients=6, rounds=6, batch_size=4, lr=0.1, participation=0.5)
    card = registry.find("defense", "dp-sgd")
    defense = card.load()(card.parse({"momentum": "0.5", "epsilon": "none", "noise": "0.1"}), problem.task)
    run = federation.run(defense, problem, Rng(0).child("federation"), watch=range(6))
    kept = [t for r in run.rounds for memory in r.memories for t in memory.values()]
    assert kept
    assert all(t.untyped_storage().nbytes() == t.nbytes for t in kept)


def test_a_client_that_does_not_fit_its_memory_is_refused() -> None:
    """FedAvg cannot slice a client's work; BAFFLE does, in the same memory."""
    model = registry.find("model", "cnn-two-stage").parse({"size": "28"})
    times = Schedule(rounds=1, batch_size=32, client_memory=3.0)
    problem = build(
        ProblemSpec("digits", model="cnn-two-stage", partition="iid", clients=2, model_options=model, schedule=times), 0
    )
    with pytest.raises(UserError, match=r"option 'client-memory' is 3 MB, but a client's step takes \d+"):
        play(problem)
    done = play(problem, "baffle")
    assert done.peak_bytes < 3e6


def test_what_a_client_keeps_counts_in_its_memory() -> None:
    """A step that fits as long as nothing is kept is refused in the round in which it no longer does."""

    class Hoarding(FedAvg):
        def clients(self, down: Tensors, batches: Any, memories: Any, noises: Any) -> tuple[Tensors, list[Tensors]]:
            ups, _ = super().clients(down, batches, memories, noises)
            return ups, [{"hoard": torch.zeros(10**6)} for _ in memories]

    fits = make(rounds=2, batch_size=4, client_memory=5.0)
    assert 4e6 < federation.run(Hoarding(None, fits.task), fits, Rng(0)).peak_bytes < 5e6
    tight = make(rounds=2, batch_size=4, client_memory=4.0)
    told = federation.run(FedAvg(None, tight.task), tight, Rng(0)).peak_bytes
    just = make(rounds=2, batch_size=4, client_memory=told / 1e6)
    assert federation.run(FedAvg(None, just.task), just, Rng(0)).peak_bytes == told
    less = make(rounds=2, batch_size=4, client_memory=(told - 1) / 1e6)
    with pytest.raises(UserError, match="option 'client-memory' is"):
        federation.run(FedAvg(None, less.task), less, Rng(0))
    with pytest.raises(UserError, match=r"option 'client-memory' is 4 MB, but a client's step takes 4\.\d+ MB"):
        federation.run(Hoarding(None, tight.task), tight, Rng(0))


def test_seconds_are_rounds_times_the_median_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process pays once must not make its first federation look slow: others are compared with that one."""
    now = 0.0

    class Timed(FedAvg):
        def aggregate(self, state: State, *args: Any) -> State:
            nonlocal now
            now += {0: 100.0, 3: 1000.0}.get(state.round, 2.0)
            return super().aggregate(state, *args)

    def seconds(rounds: int) -> float:
        problem = make(rounds=rounds, batch_size=8, lr=0.1)
        card = registry.find("defense", "fedavg")
        return federation.run(Timed(card.parse({}), problem.task), problem, Rng(0)).seconds

    monkeypatch.setattr("time.process_time", lambda: now)
    assert seconds(5) == pytest.approx(10.0)
    assert seconds(1) == pytest.approx(100.0)
