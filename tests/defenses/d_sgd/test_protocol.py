"""D-SGD: self-centered clipping by hand, and what a neighbour learns of an upload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.peers import nodes, peers, trained, views

from fedarena.contracts.control import control_readings, relative_error
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Round
from fedarena.core.gradients import gradient
from fedarena.core.tensors import Tensors, flatten, row, rows, scale
from fedarena.core.threat import Form, NotApplicable, Party
from fedarena.defenses.d_sgd.protocol import DSGD
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import Problem


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


def test_arc_with_one_corrupted_is_the_adaptive_clipping_of_he_et_al() -> None:
    """As their code: τ is the second longest of the distances to a node's neighbours."""
    problem = nodes(6, corrupted=1, rounds=1, lr=20)
    protocol = peers(problem, "d-sgd+arc+mean", graph="random-regular", degree=4)
    run = trained(problem, protocol)
    halves, mixed = rows(run.rounds[0].halves), rows(run.models)
    for i, around in enumerate(protocol.graph.neighbours):
        z = halves[list(around)] - halves[i]
        tau = z.norm(dim=1).sort().values[-2]
        cut = z * (tau / z.norm(dim=1, keepdim=True)).clamp(max=1)
        torch.testing.assert_close(mixed[i], halves[i] + cut.sum(0) / 5, rtol=1e-4, atol=1e-5)
        assert float((cut - z).norm()) > 1e-3


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


@pytest.mark.parametrize("rule", ["median", "trimmed-mean", "nnm+krum", "fldetector+mean"])
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


BETA = 0.8
MOMENTA = {"sum": 1.0, "ema": 1 - BETA}


def read_momenta(
    graph: str,
    form: Form,
    sums: str = "sum",
    party: Party = "client",
    without: int = -1,
    rate: str = "cosine",
    **options: object,
) -> tuple[Problem, tuple[Round, ...], tuple[Observation, ...]]:
    """What a party reads of nodes that send momenta; `without` one round."""
    schedule = {"client_optimizer": "momentum", "momentum": BETA, "momentum_form": sums, "lr_schedule": rate}
    problem = nodes(6, rounds=6, **schedule)
    protocol = peers(problem, graph=graph, **options)
    run = trained(problem, protocol)
    threat, seen = views(run, party, form)
    seen = {t: now for t, now in seen.items() if t != without}
    readings = protocol.readings(threat, seen, range(6))
    controls = control_readings(protocol, threat, run.rounds, seen, range(6))
    assert not isinstance(readings, NotApplicable)
    assert not isinstance(controls, NotApplicable)
    (reading,), (control,) = readings, controls
    for one, other in zip(reading.observations, control.observations, strict=True):
        assert relative_error(one.target, other.target) == 0
    return problem, run.rounds, reading.observations


def gradient_of(problem: Problem, r: Round, o: Observation) -> Tensors:
    (victim,) = o.clients
    return gradient(problem.task.loss, row(r.models, victim), *r.batches[victim].images())


@pytest.mark.parametrize("sums", MOMENTA)
@pytest.mark.parametrize("known", [{"graph": "complete"}, {"graph": "ring", "colluders": 1}])
def test_a_neighbour_takes_the_earlier_momentum_out(sums: str, known: dict[str, object]) -> None:
    problem, rounds, observations = read_momenta(form="adaptive", sums=sums, **known)  # type: ignore[arg-type]
    assert [o.round for o in observations] == list(range(6))
    for o in observations:
        truth = gradient_of(problem, rounds[o.round], o)
        assert o.estimate is not None
        assert relative_error(o.estimate, truth) < 5e-3
        assert relative_error(o.target, scale(MOMENTA[sums], truth)) < 5e-3
        x, y = rounds[o.round].batches[o.clients[0]].images()
        assert relative_error(o.simulate(x, torch.nn.functional.one_hot(y, 10).float()), o.target) < 5e-3


def test_the_paper_form_takes_a_neighbours_momentum_as_a_gradient() -> None:
    parties: tuple[Party, ...] = ("client", "eavesdropper")
    for party in parties:
        _, rounds, observations = read_momenta("complete", "paper", party=party)
        first = observations[0]
        assert relative_error(first.target, row(rounds[0].ups, first.clients[0])) < 1e-4
        for o in observations:
            assert o.estimate == o.target


def test_of_a_partly_known_model_the_momentum_is_taken_out_too() -> None:
    parties: tuple[Party, ...] = ("client", "eavesdropper")
    for party in parties:
        problem, rounds, observations = read_momenta("ring", "adaptive", party=party, rate="constant")
        found, left = torch.zeros(()), torch.zeros(())
        for o in observations[1:]:
            truth = flatten(gradient_of(problem, rounds[o.round], o))
            assert o.estimate is not None
            found += torch.cosine_similarity(flatten(o.estimate), truth, dim=0)
            left += torch.cosine_similarity(flatten(row(rounds[o.round].ups, o.clients[0])), truth, dim=0)
        assert found > left + 0.5


def test_with_a_round_missing_a_neighbours_momentum_stays() -> None:
    """Without round 1 nothing is read of it and of round 2. Of round 3 the upload is known, not the one before."""
    problem, rounds, observations = read_momenta("complete", "adaptive", without=1)
    assert [o.round for o in observations] == [0, 3, 4, 5]
    for o in observations:
        up = row(rounds[o.round].ups, o.clients[0])
        expected = up if o.round in (0, 3) else gradient_of(problem, rounds[o.round], o)
        assert relative_error(o.target, expected) < 5e-3


GRAPH = {"d-sgd.degree": "6", "d-sgd.draw": "3"}


def read_behind(rule: str, options: dict[str, str] = GRAPH, lr: float = 0.05) -> tuple[str, list[float]]:
    """The name of a neighbour's reading behind a rule, and the relative error of each upload."""
    problem = nodes(12, rounds=14, batch_size=1, lr=lr)
    protocol: Any = make_defense(parse_defense(f"d-sgd+{rule}", options), problem.task)
    run = trained(problem, protocol)
    threat, seen = views(run)
    readings = protocol.readings(threat, seen, range(1, 14))
    assert not isinstance(readings, NotApplicable)
    (reading,) = readings
    return reading.name, [
        relative_error(o.target, row(run.rounds[o.round].ups, *o.clients)) for o in reading.observations
    ]


@pytest.mark.parametrize(("rule", "lr", "most"), [("krum", 0.05, 8), ("arc+krum", 0.05, 5), ("clipping+krum", 2.0, 9)])
def test_which_message_a_node_took_is_told_by_its_next_one(
    rule: str, lr: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upload is exact where that message was heard. To run the rule on the mean of those heard errs more often."""
    name, errors = read_behind(rule, lr=lr)
    assert name == "picked"
    exact = sum(error < 1e-2 for error in errors)
    assert exact >= most
    monkeypatch.setattr(DSGD, "takes_mean_of", lambda self, node: 0)
    name, errors = read_behind(rule, lr=lr)
    assert name == "mixing"
    assert exact > sum(error < 1e-2 for error in errors)


def test_of_two_messages_that_a_node_took_the_next_one_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {**GRAPH, "multi-krum.m": "2"}
    name, told = read_behind("multi-krum", two)
    assert name == "picked"
    monkeypatch.setattr(DSGD, "takes_mean_of", lambda self, node: 0)
    name, run = read_behind("multi-krum", two)
    assert name == "mixing"
    assert sum(told) < sum(run)


def test_in_the_first_round_alone_a_rule_is_not_asked() -> None:
    problem = nodes(6, rounds=1)
    for name in ("d-sgd", "d-sgd+krum"):
        protocol = peers(problem, name)
        threat, seen = views(trained(problem, protocol))
        readings = protocol.readings(threat, seen, [0])
        assert not isinstance(readings, NotApplicable)
        assert [reading.name for reading in readings] == ["mixing"]


def test_behind_krum_nothing_is_guessed_where_all_is_heard() -> None:
    name, errors = read_behind("krum", {"d-sgd.graph": "complete"})
    assert name == "mixing"
    assert max(errors) < 1e-2
