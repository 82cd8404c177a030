"""DP-SGD between peers: its step and its ε are DP-SGD's, and a neighbour reads noise."""

from __future__ import annotations

import torch
from helpers.peers import nodes, peers, trained, views

from fedarena.core.tensors import flatten, row
from fedarena.core.threat import NotApplicable
from fedarena.federation.compose import make_defense, parse_defense


def test_a_node_takes_dp_sgds_step_at_its_own_model_with_its_epsilon() -> None:
    problem = nodes(5, rounds=2)
    protocol = peers(problem, "dp-peers", graph="ring", epsilon=5.0)
    server = make_defense(parse_defense("dp-sgd", {"epsilon": "5"}), problem.task)
    assert protocol.guarantees() == server.guarantees()
    assert protocol.noise_std == server.noise_std > 0
    quiet = peers(problem, "dp-peers", graph="ring", epsilon=None)
    run = trained(problem, quiet)
    for r in run.rounds:
        for i in r.participants:
            up, _ = quiet.client(row(r.models, i), r.batches[i], {}, {})
            torch.testing.assert_close(flatten(row(r.ups, i)), flatten(up), rtol=1e-4, atol=1e-6)


def test_a_neighbour_reads_the_noise_with_the_gradient() -> None:
    problem = nodes(5, rounds=2)
    cosines = []
    for epsilon in (None, 2.0):
        protocol = peers(problem, "dp-peers", graph="complete", epsilon=epsilon)
        run = trained(problem, protocol)
        threat, seen = views(run)
        readings = protocol.readings(threat, seen, [1])
        assert not isinstance(readings, NotApplicable)
        (o,) = readings[0].observations
        assert o.estimate is not None
        up = flatten(row(run.rounds[1].ups, o.clients[0]))
        torch.testing.assert_close(flatten(o.estimate), up, rtol=1e-2, atol=1e-3)
        clean = peers(problem, "dp-peers", graph="complete", epsilon=None)
        plain, _ = clean.client(row(run.rounds[1].models, o.clients[0]), run.rounds[1].batches[o.clients[0]], {}, {})
        cosines.append(float(torch.cosine_similarity(up, flatten(plain), dim=0)))
    assert cosines[0] > 0.99 > 0.5 > cosines[1]
