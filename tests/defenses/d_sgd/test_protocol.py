"""D-SGD: self-centered clipping by hand, and what a neighbour learns of an upload."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.peers import nodes, peers, trained, views

from fedarena.core.tensors import flatten, row, rows
from fedarena.core.threat import NotApplicable


def test_self_centered_clipping_cuts_differences() -> None:
    problem = nodes(5, rounds=1)
    free = trained(problem, peers(problem, graph="ring")).rounds[0]
    halves = rows(free.halves)
    apart = (halves[0] - halves[1]).norm()
    tau = float(apart) / 2
    run = trained(problem, peers(problem, graph="ring", clip=tau))
    for i in range(5):
        expected = halves[i].clone()
        for j in ((i - 1) % 5, (i + 1) % 5):
            z = halves[j] - halves[i]
            expected += z * min(1.0, tau / float(z.norm())) / 3
        torch.testing.assert_close(flatten(row(run.models, i)), expected, rtol=1e-4, atol=1e-6)
    wide = trained(problem, peers(problem, graph="ring", clip=1e6))
    plain = trained(problem, peers(problem, graph="ring"))
    torch.testing.assert_close(rows(wide.models), rows(plain.models), rtol=1e-4, atol=1e-6)


def test_where_all_weigh_the_same_the_mean_of_clipped_differences_does_it() -> None:
    problem = nodes(5, rounds=2, lr=20)
    clipped, option, plain = (
        rows(trained(problem, peers(problem, name, graph="ring", **options)).models)
        for name, options in (("d-sgd+clipping+mean", {}), ("d-sgd", {"clip": 2.0}), ("d-sgd", {}))
    )
    torch.testing.assert_close(clipped, option, rtol=1e-4, atol=1e-5)
    assert float((clipped - plain).norm()) > 1


def relative_errors(graph: str, form: str, party: str = "client", **options: object) -> list[float]:
    """How far what a party takes for the victim's upload is from it, round by round."""
    problem = nodes(6, rounds=4)
    protocol = peers(problem, graph=graph, **options)
    run = trained(problem, protocol)
    threat, seen = views(run, party, form)  # type: ignore[arg-type]
    readings = protocol.readings(threat, seen, range(4))
    assert not isinstance(readings, NotApplicable)
    (reading,) = readings
    errors = []
    for o in reading.observations:
        truth = flatten(row(run.rounds[o.round].ups, o.clients[0]))
        assert o.estimate is not None
        errors.append(float((flatten(o.estimate) - truth).norm() / truth.norm()))
    return errors


def test_in_the_first_round_and_in_a_complete_graph_the_upload_is_exact() -> None:
    assert max(relative_errors("complete", "adaptive")) < 1e-3
    for form in ("paper", "adaptive"):
        for party in ("client", "eavesdropper"):
            first, *later = relative_errors("ring", form, party)
            assert first < 1e-4
            assert min(later) > 1e-2


def test_all_neighbours_of_a_node_together_know_its_upload() -> None:
    alone, together = (relative_errors("ring", "adaptive", colluders=k) for k in (0, 1))
    assert max(together) < 1e-3 < min(alone[1:])


def test_there_is_no_server_to_attack() -> None:
    problem = nodes(5)
    protocol = peers(problem)
    run = trained(problem, protocol)
    threat, seen = views(run, "server")
    assert not seen
    refused = protocol.readings(threat, seen, [0])
    assert isinstance(refused, NotApplicable)
    assert "no server" in refused.reason
    client, theirs = views(run)
    assert isinstance(protocol.disclosure(client, theirs[0]), NotApplicable)


@pytest.mark.parametrize("rule", ["median", "trimmed-mean", "nnm+krum"])
def test_a_node_mixes_by_any_rule(rule: str) -> None:
    problem = nodes(8, corrupted=1, rounds=40, batch_size=16)
    assert trained(problem, peers(problem, f"d-sgd+{rule}", degree=5)).accuracy > 0.5


@pytest.mark.parametrize("name", ["d-sgd", "dbcl-peers"])
def test_of_nodes_that_a_party_does_not_hear_it_reads_nothing(name: str) -> None:
    problem = nodes(6, rounds=2)
    protocol = peers(problem, name, graph="ring")
    threat, seen = views(trained(problem, protocol))
    for victim, hears in ((1, True), (5, True), (3, False), (0, False)):
        asked = {t: replace(now, victim=victim) for t, now in seen.items()}
        found = protocol.readings(threat, asked, [0, 1])
        assert isinstance(found, NotApplicable) != hears


def test_a_coalition_does_not_attack_its_own() -> None:
    problem = nodes(6, rounds=2)
    protocol = peers(problem, graph="ring", colluders=1)
    threat, seen = views(trained(problem, protocol))
    (ally,) = set(seen[0].halves) - {0}
    found = protocol.readings(threat, {t: replace(now, victim=ally) for t, now in seen.items()}, [0, 1])
    assert isinstance(found, NotApplicable)
