"""The loop with corrupted clients: they get what their knowledge allows, and the defense never learns who they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core import registry
from fedarena.core.errors import UnusableAnswer
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Knowledge
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of, why_not
from fedarena.federation.compose import make_defense, make_poisoning, parse_attack, parse_defense
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch


def problem_of(corrupted: int = 2, **schedule: Any) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    made = Schedule(**{"rounds": 4, "batch_size": 8, **schedule})
    return build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=6, model_options=model, schedule=made, corrupted=corrupted
        ),
        3,
    )


def play(
    attack: type[Poisoning] | None,
    knows: Knowledge = "own",
    problem: Problem | None = None,
    defense: FedAvg | None = None,
) -> tuple[federation.Run, Poisoning | None]:
    problem = problem or problem_of()
    defense = defense or FedAvg(NoOptions(), problem.task)
    made = attack(NoOptions(), knowledge_of(problem, defense, knows)) if attack else None
    adversary = Adversary(made, frozenset(problem.corrupted), Rng(9)) if made else None
    watch = range(problem.task.schedule.rounds)
    return federation.run(defense, problem, Rng(3).child("federation"), watch=watch, adversary=adversary), made


class Obedient(Poisoning):
    """Sends what the protocol would."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return dict(view.own), memory


class Flip(Poisoning):
    """Minus what the protocol would send."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return {name: -t for name, t in view.own.items()}, memory


class Silent(Poisoning):
    """Zeros, without computing anything."""

    follows = False

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        shapes = {name: p.shape for name, p in view.down.items()}
        return {name: torch.zeros(view.size, *shape) for name, shape in shapes.items()}, memory


class Zeroed(Poisoning):
    """Trains on label 0 only."""

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return Batch(batch.x, torch.zeros_like(batch.y))


def test_corrupted_clients_that_obey_change_nothing() -> None:
    a, b = play(None)[0], play(Obedient)[0]
    assert all(torch.equal(a.params[n], b.params[n]) for n in a.params)


def test_malicious_uploads_replace_those_of_corrupted_clients_alone() -> None:
    problem = problem_of()
    a, b = play(None, problem=problem)[0], play(Flip, problem=problem)[0]
    for name, ups in b.rounds[0].ups.items():
        for row, client in enumerate(b.rounds[0].participants):
            sign = -1 if client in problem.corrupted else 1
            assert torch.equal(ups[row], sign * a.rounds[0].ups[name][row]), (name, client)


def test_an_attack_on_data_changes_the_corrupted_clients_batches_only() -> None:
    problem = problem_of()
    run, plain = play(Zeroed, problem=problem)[0], play(None, problem=problem)[0]
    for client, batch, before in zip(
        run.rounds[0].participants, run.rounds[0].batches, plain.rounds[0].batches, strict=True
    ):
        assert torch.equal(batch.x, before.x)
        assert torch.equal(batch.y, torch.zeros_like(batch.y)) == (client in problem.corrupted)
    alone = FedAvg(NoOptions(), problem.task)
    for row, batch in enumerate(run.rounds[0].batches):
        up = alone.client(run.rounds[0].down, batch, {}, {})[0]
        assert all(torch.allclose(up[n], run.rounds[0].ups[n][row], atol=1e-6) for n in up)


class Recorder(Poisoning):
    """Keeps what it was handed."""

    seen: list[RoundView]

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        self.seen = [*getattr(self, "seen", []), view]
        if "calls" in memory:
            assert int(memory["calls"]) == len(self.seen) - 1
        return dict(view.own), {"calls": torch.tensor(len(self.seen))}


@pytest.mark.parametrize("knows", ["own", "omniscient"])
def test_the_knowledge_decides_what_is_handed_over(knows: Knowledge) -> None:
    problem = problem_of()
    run, made = play(Recorder, knows, problem)
    assert isinstance(made, Recorder)
    assert len(made.seen) == 4
    for view, r in zip(made.seen, run.rounds, strict=True):
        bad = [i for i, c in enumerate(r.participants) if c in problem.corrupted]
        good = [i for i, c in enumerate(r.participants) if c not in problem.corrupted]
        assert (view.round, view.participants, view.size) == (r.index, 6, 2)
        for name, ups in r.ups.items():
            assert torch.equal(view.own[name], ups[bad])
        if knows == "own":
            assert view.honest == {}
            assert view.honest_clients == ()
        else:
            assert view.honest_clients == tuple(r.participants[i] for i in good)
            assert all(torch.equal(view.honest[name], ups[good]) for name, ups in r.ups.items())


def test_the_pool_is_the_corrupted_clients_data_and_no_more() -> None:
    problem = problem_of()
    knowledge = knowledge_of(problem, FedAvg(NoOptions(), problem.task), "own")
    assert len(knowledge.data.y) == sum(problem.task.sizes[c] for c in problem.corrupted)
    mine = torch.cat([problem.x[problem.shards[c]] for c in problem.corrupted])
    assert torch.equal(knowledge.data.x, mine)


class Vandal(Poisoning):
    """Writes into everything it is handed."""

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        batch.x.fill_(7.0)
        return Batch(batch.x, batch.y)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        for tensors in (view.down, view.honest):
            for t in tensors.values():
                t.fill_(5.0)
        return dict(view.own), memory


def test_writing_into_what_it_sees_reaches_nobody() -> None:
    problem = problem_of()
    run = play(Vandal, "omniscient", problem)[0]
    plain = play(None, problem=problem)[0]
    for row, client in enumerate(run.rounds[0].participants):
        if client not in problem.corrupted:
            assert all(torch.equal(t[row], plain.rounds[0].ups[n][row]) for n, t in run.rounds[0].ups.items())
    assert all(torch.equal(t, plain.rounds[0].down[n]) for n, t in run.rounds[0].down.items())
    assert float(problem.x.max()) == 16


def test_clients_that_compute_nothing_cost_nothing_and_send_what_they_like() -> None:
    problem = problem_of()
    ran = []

    class Counting(FedAvg):
        def clients(self, down: Any, batches: Any, memories: Any, noises: Any) -> Any:
            ran.append(len(batches))
            return super().clients(down, batches, memories, noises)

    run = play(Silent, problem=problem, defense=Counting(NoOptions(), problem.task))[0]
    assert [n for n in ran if n > 1] == [4] * 4  # one is a client whose memory is measured
    bad = [i for i, c in enumerate(run.rounds[0].participants) if c in problem.corrupted]
    assert all(not t[bad].any() for t in run.rounds[0].ups.values())


@dataclass
class Told:
    """What the server was told in a round."""

    cohorts: list[Cohort] = field(default_factory=list)


def test_clients_that_compute_nothing_draw_nothing() -> None:
    """But the first participant does, on whom memory is measured."""
    drawn: list[int] = []

    class Drawing(FedAvg):
        def draw(self, rng: Rng) -> Tensors:
            drawn.append(int(rng.path[-1]))
            return {}

    class Silent(Obedient):
        follows = False

        def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
            return {name: torch.zeros(view.size, *w.shape) for name, w in view.down.items()}, memory

    problem = problem_of(rounds=1)
    play(Silent, problem=problem, defense=Drawing(NoOptions(), problem.task))
    assert set(drawn) == {0, *range(6)} - {client for client in problem.corrupted if client}


def test_the_server_is_told_nothing_about_who_is_corrupted() -> None:
    problem, told = problem_of(), Told()

    class Curious(FedAvg):
        def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
            told.cohorts.append(cohort)
            return super().direction(state, sent, ups, cohort, rng)

    play(Flip, problem=problem, defense=Curious(NoOptions(), problem.task))
    assert {c.clients for c in told.cohorts} == {tuple(range(6))}
    assert not hasattr(problem.task, "corrupted")


def test_rounds_without_a_corrupted_participant_are_as_always() -> None:
    problem = problem_of(1, participation=0.17, rounds=12)
    run, plain = play(Flip, problem=problem)[0], play(None, problem=problem)[0]
    first = next(i for i, r in enumerate(run.rounds) if problem.corrupted[0] in r.participants)
    assert 0 < first < 12
    assert all(torch.equal(run.rounds[first].params[n], plain.rounds[first].params[n]) for n in run.params)
    assert not all(torch.equal(run.rounds[first].after[n], plain.rounds[first].after[n]) for n in run.params)


def test_a_round_of_corrupted_clients_alone_is_a_round() -> None:
    problem = problem_of(5, participation=0.17, rounds=6)
    run = play(Silent, problem=problem)[0]
    assert any(r.participants[0] in problem.corrupted for r in run.rounds)
    for r in run.rounds:
        moved = any(not torch.equal(r.params[n], r.after[n]) for n in r.params)
        assert moved == (r.participants[0] not in problem.corrupted)


class Misshapen(Poisoning):
    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return {name: t[:1] for name, t in view.own.items()}, memory


class Infinite(Poisoning):
    """One client sends infinities, the other obeys."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        sent = {name: t.clone() for name, t in view.own.items()}
        next(iter(sent.values()))[0].fill_(float("inf"))
        return sent, memory


def test_what_is_no_upload_is_refused() -> None:
    with pytest.raises(UnusableAnswer, match="an upload of 2 clients is"):
        play(Misshapen)


def test_what_is_not_finite_counts_as_nothing() -> None:
    problem = problem_of()
    run, plain = play(Infinite, problem=problem)[0], play(None, problem=problem)[0]
    first, second = (run.rounds[0].participants.index(c) for c in problem.corrupted)
    for name, ups in run.rounds[0].ups.items():
        assert not ups[first].any()
        assert torch.equal(ups[second], plain.rounds[0].ups[name][second])


def test_integers_of_an_upload_stay_as_the_protocol_has_them() -> None:
    """Clients' own seeds and counts say how differences are to be read; a scaled seed would be another one."""
    times = Schedule(rounds=2, batch_size=8, lr=0.02)
    model = registry.find("model", "mlp").parse({"widths": "16"})
    problem = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=6, model_options=model, schedule=times, corrupted=2
        ),
        0,
    )
    options = {"perturbations": "client", "directions": "20", "min_directions": "5"}
    defense = make_defense(parse_defense("baffle", options), problem.task)
    rng, bad = Rng(0).child("federation"), list(problem.corrupted)
    honest = federation.run(defense, problem, rng, watch=(0,)).rounds[0].ups
    for name in ("sign-flip", "gaussian"):
        attack = make_poisoning(parse_attack(name), knowledge_of(problem, defense, "own"))
        adversary = Adversary(attack, frozenset(bad), Rng(3))
        sent = federation.run(defense, problem, rng, watch=(0,), adversary=adversary).rounds[0].ups
        assert not torch.equal(sent["differences"][bad], honest["differences"][bad])
        if attack.follows:
            assert torch.equal(sent["seed"], honest["seed"])
            assert torch.equal(sent["count"], honest["count"])
        good = [c for c in range(6) if c not in bad]
        assert torch.equal(sent["differences"][good], honest["differences"][good])
        assert torch.equal(sent["seed"][good], honest["seed"][good])


def test_nobody_is_omniscient_under_a_secure_sum() -> None:
    times = Schedule(rounds=2, batch_size=8)
    model = registry.find("model", "mlp").parse({"widths": "16"})
    problem = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=6, model_options=model, schedule=times, corrupted=2
        ),
        0,
    )
    summed = make_defense(parse_defense("fedavg+pairwise-masks"), problem.task)
    attack = make_poisoning(parse_attack("ipm"), knowledge_of(problem, summed, "omniscient"))
    reason = why_not(attack)
    assert reason is not None
    assert "hides the honest uploads" in reason.reason
    assert why_not(make_poisoning(parse_attack("ipm"), knowledge_of(problem, summed, "own"))) is None
