"""Rounds without a server: against a server's, node by node, and what corrupted nodes and parties get of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.peers import nodes, peers, trained, views
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.contracts.transcript import cut
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, row, rows
from fedarena.core.threat import Threat
from fedarena.defenses.aggregators.mean import Mean
from fedarena.defenses.d_sgd.card import Options
from fedarena.defenses.d_sgd.protocol import DSGD
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.nodes import node_metrics
from fedarena.federation.replay import Replays
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.spec import ProblemSpec


def assert_close(a: Tensors, b: Tensors, rtol: float = 1e-4) -> None:
    assert list(a) == list(b)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("schedule", [{}, {"local_epochs": 2, "lr": 0.05}, {"client_optimizer": "momentum"}])
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_in_a_complete_graph_it_is_a_servers_mean(model: str, schedule: dict[str, Any]) -> None:
    problem = nodes(4, model, rounds=2, **schedule)
    alone = trained(problem, peers(problem, graph="complete"))
    server = federation.run(make_defense(parse_defense("mean"), problem.task), problem, Rng(0).child("federation"))
    assert_close(alone.params, server.params)
    for i in range(4):
        assert_close(row(alone.models, i), server.params)


def test_the_hub_of_a_star_mixes_as_a_server_does() -> None:
    """Its own upload is among those that it averages. The leaves keep most of their own models."""
    problem = nodes(4, rounds=1)
    alone = trained(problem, peers(problem, graph="star"))
    server = federation.run(make_defense(parse_defense("mean"), problem.task), problem, Rng(0).child("federation"))
    assert_close(row(alone.models, 0), server.params)
    assert float((flatten(row(alone.models, 1)) - flatten(server.params)).norm()) > 1e-3


def test_every_node_steps_at_its_own_model_and_mixes_its_neighbours() -> None:
    problem = nodes(6)
    protocol = peers(problem, graph="ring")
    run = trained(problem, protocol)
    for r, after in zip(run.rounds, [*[r.models for r in run.rounds[1:]], run.models], strict=True):
        halves = []
        for i in r.participants:
            up, _ = protocol.client(row(r.models, i), r.batches[i], {}, {})
            halves.append(flatten(combine(1.0, row(r.models, i), -0.5, up)))
            assert_close(row(r.ups, i), up)
        weights = torch.zeros(6, 6)
        for i in range(6):
            for j, weight in protocol.graph.mixing[i].items():
                weights[i, j] = weight
        torch.testing.assert_close(rows(after), weights @ torch.stack(halves), rtol=1e-4, atol=1e-6)
    assert_close(run.params, {n: t.mean(0) for n, t in run.models.items()})
    assert float(rows(run.models).std(0).max()) > 0  # neighbours differ


def test_one_product_for_all_nodes_gives_what_they_give_one_by_one() -> None:
    class OneByOne(DSGD):
        @property
        def plain(self) -> bool:
            return False

    problem = nodes(7)
    protocol = peers(problem)
    slow = trained(problem, OneByOne(protocol.options, problem.task))
    fast = trained(problem, protocol)
    assert_close(fast.models, slow.models)
    assert fast.bytes_up == slow.bytes_up == 4 * 4 * sum(p.numel() for p in problem.init.values())
    for edge, message in slow.rounds[1].messages.items():
        assert_close(fast.rounds[1].messages[edge], message)


def test_a_rule_is_applied_to_each_neighbourhood() -> None:
    problem = nodes(5, rounds=1)
    run = trained(problem, peers(problem, "d-sgd+median", graph="ring"))
    halves = rows(run.rounds[0].halves)
    for i in range(5):
        around = halves[[(i - 1) % 5, i, (i + 1) % 5]]
        torch.testing.assert_close(flatten(row(run.models, i)), around.median(0).values, rtol=1e-4, atol=1e-6)


class TellsEveryNodeSomethingElse(Poisoning):
    """Sends the number of times that it was asked in this round, and keeps what each node was told."""

    follows = False

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        drawn = torch.rand((), generator=rng.torch())
        told = {name: drawn.expand(view.size, *w.shape) for name, w in view.down.items()}
        return told, {"drawn": memory.get("drawn", drawn)}


def test_a_corrupted_node_tells_each_neighbour_what_it_likes() -> None:
    problem = nodes(6, corrupted=1)
    protocol = peers(problem, graph="complete")
    (bad,) = problem.corrupted
    attack = TellsEveryNodeSomethingElse(NoOptions(), knowledge_of(problem, protocol, "own"))
    adversary = Adversary(attack, frozenset(problem.corrupted), Rng(9))
    r = trained(problem, protocol, adversary=adversary).rounds[-1]
    told = {j: flatten(row(r.halves, j)) - flatten(r.messages[bad, j]) for j in r.participants if j != bad}
    numbers = {round(float(u[0]), 5) for u in told.values()}
    assert len(numbers) == 5
    for u in told.values():
        torch.testing.assert_close(u, u[:1].expand_as(u), rtol=0, atol=1e-5)
    assert len({round(float(m["drawn"]), 5) for m in adversary.memory.values()}) == 5
    heard = r.messages[(bad + 1) % 6, bad]
    assert_close(heard, row(r.halves, (bad + 1) % 6))  # honest nodes send one thing


def test_a_party_sees_its_own_edges_alone() -> None:
    problem = nodes(8)
    protocol = peers(problem, graph="ring", colluders=1)
    run = trained(problem, protocol)
    victim = run.rounds[0].victim
    assert victim in (1, 7)
    (ally,) = [i for i in protocol.graph.neighbours[victim] if i]
    _, client = views(run)
    assert all(edge[0] in (0, ally) or edge[1] in (0, ally) for edge in client[1].messages)
    assert len(client[1].messages) == 8
    assert set(client[1].halves) == {0, ally}
    assert client[1].ups is None
    assert_close(client[2].down, row(run.rounds[2].models, 0))
    _, tapped = views(run, "eavesdropper")
    assert set(tapped[1].messages) == {(0, victim), (victim, 0)}
    assert tapped[1].ups is None
    assert not tapped[1].halves
    assert not tapped[1].down
    assert_close(tapped[0].down, problem.init)
    elsewhere = [replace(r, victim=3) for r in run.rounds]  # as goals do that ask about each client
    assert set(cut(elsewhere, Threat("eavesdropper", "adaptive"))[1].messages) == {(0, victim), (victim, 0)}
    _, outside = views(run, "outsider")
    assert not outside


def test_single_nodes_are_measured() -> None:
    problem = nodes(6, lr=2.0)
    protocol = peers(problem, graph="ring")
    run = trained(problem, protocol)
    told = ProblemSpec("digits", model="mlp", partition="iid", clients=6)
    spec = GroupSpec(problem=told, defense=MethodSpec("d-sgd"), attack=None, threats=(), seed=0)
    metrics = node_metrics(FinishedRun(spec, problem, protocol, run))
    each = [problem.evaluate(row(run.models, i))[0] for i in range(6)]
    assert metrics["node_worst"] == min(each)
    assert run.accuracy == pytest.approx(sum(each) / 6)
    assert metrics["mean_model"] == problem.evaluate(run.params)[0]
    apart = rows(run.models).double() - flatten(run.params).double()
    assert metrics["consensus"] == pytest.approx(float(apart.square().sum(1).mean().sqrt()), rel=1e-3)
    assert metrics["edge_bytes"] == 2 * 4 * sum(p.numel() for p in problem.init.values())


@pytest.mark.parametrize(
    ("name", "schedule", "told"),
    [
        ("d-sgd", {"participation": 0.5}, "option 'participation' is 0.5, allowed without a server: 1"),
        ("d-sgd", {"server_optimizer": "adam"}, "option 'server_optimizer' is adam, allowed without a server: sgd"),
        (
            "d-sgd+nnm+fltrust",
            {},
            "option 'defense' is 'd-sgd+nnm+fltrust', but nnm+fltrust needs samples of a server, and d-sgd has no "
            "server; allowed with it: an aggregation rule that needs no samples of a server",
        ),
        (
            "dp-peers+pairwise-masks",
            {},
            "option 'defense' is 'dp-peers+pairwise-masks', but pairwise-masks shows a server the sum of uploads, and "
            "dp-peers has no server; allowed with it:",
        ),
    ],
)
def test_what_needs_a_server_is_refused_in_one_line(name: str, schedule: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as refused:
        peers(nodes(6, **schedule), name)
    assert str(refused.value).startswith(told)


class Remembers(Mean):
    """A rule that keeps hidden state: how often it was asked."""

    asked = 0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        self.asked += 1
        return Aggregate(self.asked * x.mean(0), None)


@pytest.mark.parametrize(("rule", "hides"), [(Remembers, True), (Mean, False)])
def test_rules_of_third_parties_are_replayed_at_the_nodes(rule: type[Mean], hides: bool) -> None:
    problem = nodes(5)
    protocol = DSGD(Options(graph="ring"), problem.task, rule(NoOptions()))
    replays = Replays(names="rule", here=True, watched=frozenset({"mix"}), chosen=frozenset({0}))
    run = trained(problem, protocol, replays=replays)
    assert len(replays.calls) == 5
    assert bool(run.not_replayed) == hides


def test_more_colluders_than_neighbours_are_refused() -> None:
    with pytest.raises(UserError, match="option 'colluders' is 2, allowed in this graph: at most 1"):
        peers(nodes(6), graph="ring", colluders=2)
    assert peers(nodes(6), graph="ring", colluders=1).options.colluders == 1


def test_a_rule_that_needs_more_neighbours_is_refused_with_the_graph() -> None:
    with pytest.raises(UserError, match=r"2f \+ 3 uploads or more \(of a node's neighbourhood; see options graph"):
        peers(nodes(9, corrupted=1), "d-sgd+krum", graph="ring")
