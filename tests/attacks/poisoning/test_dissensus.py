"""Dissensus on numbers, and in a graph, where it takes from a node what its neighbours say."""

from __future__ import annotations

from dataclasses import replace

import torch
from helpers.peers import nodes, peers, trained
from helpers.poisoning import knowledge, make, round_view, sent

from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.federation.adversary import Adversary, knowledge_of

OWN, HONEST = [[1.0, 0.0], [3.0, 2.0]], [[10.0, 4.0], [20.0, 6.0], [30.0, -1.0]]


def test_it_sends_minus_epsilon_times_what_honest_ones_say() -> None:
    view = replace(round_view(OWN, HONEST), weights=(0.1, 0.2, 0.3, 0.15, 0.25))
    seen = sent(make("dissensus", knowledge("omniscient"), epsilon=0.5), view)
    said = -0.5 / 0.4 * torch.tensor([0.1 * 10 + 0.2 * 20 + 0.3 * 30, 0.1 * 4 + 0.2 * 6 - 0.3 * 1])
    torch.testing.assert_close(seen[:, :2], said.repeat(2, 1))
    blind = replace(round_view(OWN), participants=5, weights=view.weights)
    torch.testing.assert_close(
        sent(make("dissensus", knowledge("own"), epsilon=0.5), blind)[:, :2],
        (-0.5 / 0.4 * 0.6 * torch.tensor([2.0, 1.0])).repeat(2, 1),
    )


def test_with_epsilon_one_neighbours_of_a_corrupted_node_stay() -> None:
    problem = nodes(6, corrupted=1, rounds=2)
    protocol = peers(problem, graph="ring")
    (bad,) = problem.corrupted
    attack = make("dissensus", knowledge_of(problem, protocol, "omniscient"), epsilon=1.0)
    r, last = trained(problem, protocol, adversary=Adversary(attack, frozenset({bad}), Rng(1))).rounds
    for i in range(6):
        stays = torch.allclose(flatten(row(last.models, i)), flatten(row(r.halves, i)), atol=1e-5)
        assert stays == (i in protocol.graph.neighbours[bad])
