"""DBCL between peers: what nodes mix, and what neighbours make of sketches, against Gaussian conditioning."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.peers import nodes, peers, trained, views
from torch import Tensor

from fedarena.contracts.control import relative_error
from fedarena.core.gradients import gradient
from fedarena.core.tensors import flatten, row, rows
from fedarena.core.threat import NotApplicable
from fedarena.defenses.dbcl.neighbour_estimate import Look, _Path, smooth
from fedarena.defenses.dbcl.wire import SEED
from fedarena.federation.peer_round import secret_of


@pytest.mark.parametrize("mixing", ["contraction", "unbiased"])
def test_a_node_mixes_the_difference_through_the_edges_sketch(mixing: str) -> None:
    problem = nodes(5, rounds=1)
    protocol = peers(problem, "dbcl-peers", graph="ring", mixing=mixing)
    run = trained(problem, protocol)
    (r,) = run.rounds
    h, weight = r.halves["fc1.weight"], r.halves["out.bias"]
    for i in range(5):
        hidden, clear = h[i].clone(), weight[i].clone()
        for j in protocol.graph.neighbours[i]:
            message = r.messages[j, i]
            s = protocol.wire.wire.open(message)[1]["fc1.weight"].dense().float()  # type: ignore[attr-defined]
            torch.testing.assert_close(message["fc1.weight"], h[j] @ s, rtol=1e-4, atol=1e-6)
            c = s.shape[1] / s.shape[0] if mixing == "contraction" else 1.0
            hidden -= c * (h[i] - h[j]) @ s @ s.T / 3
            clear -= (weight[i] - weight[j]) / 3
        torch.testing.assert_close(run.models["fc1.weight"][i], hidden, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(run.models["out.bias"][i], clear, rtol=1e-4, atol=1e-6)
    assert r.messages[0, 1][SEED] == r.messages[1, 0][SEED] != r.messages[1, 2][SEED]
    torch.testing.assert_close(rows(run.models).mean(0), rows(r.halves).mean(0), rtol=1e-4, atol=1e-6)


def test_the_two_ends_of_an_edge_have_one_seed_a_round() -> None:
    from fedarena.core.rng import Rng

    assert secret_of(Rng(0), 3, 1, 2) == secret_of(Rng(0), 3, 2, 1)
    assert len({secret_of(Rng(0), t, 1, j) for t in range(3) for j in (2, 3)}) == 6


def test_the_smoother_is_gaussian_conditioning() -> None:
    """All rounds at once: h_0 ~ N(b, v I), h_{t+1} = F_t h_t + known_t + e; conditioned on what was seen."""
    g = torch.Generator().manual_seed(0)
    d, s, keeps, variance = 6, 2, (0.8, 1.0, 0.6, 0.9), 2.5
    rounds = len(keeps)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    begin = normal(1, d)
    looks = [Look(normal(1, s), normal(1, d), normal(d, s), keep) for keep in keeps]
    means, blocks = [begin[0]], [[variance * torch.eye(d, dtype=torch.float64)]]
    for t in range(1, rounds):
        keep, before = keeps[t - 1], blocks[-1]
        means.append(keep * means[-1] + looks[t - 1].known[0])
        cross = [keep * block for block in before]
        blocks.append([*cross, keep**2 * before[-1] + torch.eye(d, dtype=torch.float64)])
    whole = torch.zeros(rounds * d, rounds * d, dtype=torch.float64)
    for t, line in enumerate(blocks):
        for k, block in enumerate(line):
            whole[t * d : t * d + d, k * d : k * d + d] = block
            whole[k * d : k * d + d, t * d : t * d + d] = block.T
    sketches = torch.block_diag(*[look.sketches for look in looks if look.sketches is not None])
    mean, seen = torch.cat(means), torch.cat([look.seen[0] for look in looks])
    gain = whole @ sketches @ torch.linalg.inv(sketches.T @ whole @ sketches)
    expected = mean + gain @ (seen - sketches.T @ mean)
    found = torch.cat([h[0] for h in smooth(looks, begin, variance)])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def cosines(form: str, party: str = "client", rule: str = "", **options: object) -> dict[str, float]:
    """By reading, the mean cosine of the estimate of hidden layers with the victim's upload, after the first round."""
    problem = nodes(7, rounds=6, batch_size=4)
    protocol = peers(problem, "dbcl-peers" + rule, **options)
    run = trained(problem, protocol)
    threat, seen = views(run, party, form)  # type: ignore[arg-type]
    readings = protocol.readings(threat, seen, range(1, 6))
    assert not isinstance(readings, NotApplicable)
    found = {}
    for reading in readings:
        each = []
        for o in reading.observations:
            assert o.estimate is not None
            up = row(run.rounds[o.round].ups, o.clients[0])
            truth = flatten({name: up[name] for name in o.estimate})
            each.append(float(torch.cosine_similarity(flatten(o.estimate), truth, dim=0)))
        found[reading.name] = sum(each) / len(each)
    return found


def test_the_papers_attackers_learn_nothing_and_a_coalition_all() -> None:
    assert all(abs(cosine) < 0.2 for cosine in cosines("paper").values())
    known = [cosines("adaptive", colluders=k)["smoother"] for k in range(4)]
    assert known == sorted(known)
    assert 0.2 < known[0] < 0.9
    assert known[3] == pytest.approx(1, abs=1e-3)
    assert 0 < cosines("adaptive", "eavesdropper")["smoother"] < known[1]


def test_where_every_sketch_shows_all_a_neighbour_of_all_reads_all() -> None:
    """At s = d a balanced sketch is a signed permutation, and in a complete graph all models are heard."""
    assert cosines("adaptive", ratio=1.0, graph="complete")["smoother"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("kind", ["balanced", "countsketch", "uniform", "gaussian"])
def test_what_is_not_heard_is_expected_as_it_is_mixed(kind: str) -> None:
    """κ I is the mean over S of what v mixes of a neighbour, also where the balanced hash drops coordinates."""
    problem = nodes(6, rounds=1)
    protocol = peers(problem, "dbcl-peers", graph="complete", ratio=0.7, hash=kind)
    run = trained(problem, protocol)
    seen = views(run)[1]
    path = _Path(
        protocol.wire,  # type: ignore[attr-defined]
        weights=[protocol.graph.mixing[run.rounds[0].victim]],
        stretch=[seen[0]],
        name="fc1.weight",
        node=run.rounds[0].victim,
        models={0: [run.rounds[0].halves["fc1.weight"][0].double()]},
    )
    rows_of_one = torch.eye(64)[:8]
    mixed = []
    for secret in range(400):
        message = protocol.message({**row(run.rounds[0].halves, 1), "fc1.weight": rows_of_one}, secret)
        mixed.append(protocol.wire.expanded({"fc1.weight": message["fc1.weight"]}, message)["fc1.weight"])  # type: ignore[attr-defined]
    (per_neighbour, *rest) = (share / protocol.graph.weight(path.node, j) for j, share in path.shares(0).items())
    assert rest == pytest.approx([per_neighbour] * 3)
    mean = torch.stack(mixed).mean(0)
    assert float(mean.diagonal().mean()) == pytest.approx(per_neighbour, rel=0.05)


def test_the_first_rounds_gradient_is_seen_through_one_sketch() -> None:
    """Of it s of d numbers a row are known: the cosine is √(s/d) in the mean over S."""
    problem = nodes(6, rounds=1)
    protocol = peers(problem, "dbcl-peers")
    run = trained(problem, protocol)
    threat, seen = views(run)
    readings = protocol.readings(threat, seen, [0])
    assert not isinstance(readings, NotApplicable)
    (o,) = readings[0].observations
    assert o.estimate is not None
    up = row(run.rounds[0].ups, o.clients[0])
    cosine = torch.cosine_similarity(flatten(o.estimate), flatten({n: up[n] for n in o.estimate}), dim=0)
    assert float(cosine) == pytest.approx(math.sqrt(0.5), abs=0.1)
    for name in ("out.weight", "out.bias"):
        torch.testing.assert_close(o.target[name], up[name], rtol=1e-3, atol=1e-5)


def test_an_eavesdropper_follows_the_other_end_of_its_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cosine is higher than that of one who takes the victim to mix with nobody else."""
    wise = [cosines("adaptive", "eavesdropper", graph="random-regular", draw=k)["smoother"] for k in range(3)]
    monkeypatch.setattr(_Path, "shares", lambda path, t: {})
    alone = [cosines("adaptive", "eavesdropper", graph="random-regular", draw=k)["smoother"] for k in range(3)]
    assert sum(wise) > sum(alone)


@pytest.mark.parametrize("rule", ["+median", "+nnm+trimmed-mean"])
def test_the_smoother_reads_behind_a_rule(rule: str) -> None:
    """It takes the rule's mixing for the mean, and loses little by that in a small graph."""
    assert cosines("adaptive", rule=rule)["smoother"] > cosines("adaptive")["smoother"] - 0.15
    assert cosines("adaptive", rule=rule, colluders=1)["smoother"] > cosines("adaptive", rule=rule)["smoother"]


@pytest.mark.parametrize("rule", ["krum", "arc+krum"])
def test_what_crosses_in_clear_tells_which_message_a_node_took(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a rule that takes one message the smoother reads more than if it took the mean of all."""
    problem = nodes(12, rounds=12, batch_size=1, lr=0.05)
    protocol = peers(problem, f"dbcl-peers+{rule}", degree=6, draw=3)
    run = trained(problem, protocol)
    seen = views(run)[1]
    victim = run.rounds[0].victim
    told = protocol.mixing_told([seen[t] for t in range(12)], victim)  # type: ignore[attr-defined]
    right = 0
    for t, weights in enumerate(told[:-1]):
        after = row(run.rounds[t + 1].models, victim)["out.weight"]
        sent = {j: run.rounds[t].halves["out.weight"][j] for j in protocol.graph.mixing[victim]}
        taken = min(sent, key=lambda j: float((sent[j] - after).norm()))
        right += max(weights, key=weights.__getitem__) == taken
    assert right >= 9
    assert told[-1] == protocol.graph.mixing[victim]
    told_of = cosines("adaptive", rule=f"+{rule}")["smoother"]
    monkeypatch.setattr(type(protocol), "takes_mean_of", lambda self, node: 0)
    assert told_of > cosines("adaptive", rule=f"+{rule}")["smoother"]


def test_a_coalition_takes_the_earlier_momentum_out() -> None:
    """All of a victim's other neighbours together know its uploads, and so the gradient behind each."""
    problem = nodes(5, rounds=4, client_optimizer="momentum", momentum=0.8)
    protocol = peers(problem, "dbcl-peers", graph="complete", colluders=3)
    run = trained(problem, protocol)
    threat, seen = views(run)
    readings = protocol.readings(threat, seen, [0, 3])
    assert not isinstance(readings, NotApplicable)
    assert [reading.name for reading in readings] == ["smoother", "smoother, momentum left"]
    first, last = readings[0].observations
    (victim,) = last.clients
    for o in (first, last):
        r = run.rounds[o.round]
        truth = gradient(problem.task.loss, row(r.models, victim), *r.batches[victim].images())
        assert o.estimate is not None
        assert relative_error(o.estimate, {name: truth[name] for name in o.estimate}) < 5e-2
    up, left = row(run.rounds[3].ups, victim), readings[1].observations[1]
    assert left.estimate is not None
    assert relative_error(left.estimate, {name: up[name] for name in left.estimate}) < 5e-2
