"""Secure aggregation in a federation: the same model, sums for whoever reads the wire, dropouts, corrupted senders."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import Threat
from fedarena.defenses.secure.pairwise import PairwiseMasks
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, NoAdversary, knowledge_of
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def problem(clients=4, rounds=3, **schedule):
    times = Schedule(**{"rounds": rounds, "batch_size": 8, "lr": 0.2, **schedule})
    model = registry.find("model", "mlp").parse({})
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=clients,
            model_options=model,
            schedule=times,
            corrupted=clients // 4,
        ),
        0,
    )


def played(defense, given, options=None, adversary=None):
    method = compose.parse_defense(defense, options or {})
    made = compose.make_defense(method, given.task)
    rounds = range(given.task.schedule.rounds)
    return made, federation.run(made, given, Rng(0).child("federation"), watch=rounds, adversary=adversary)


def flipping(given, defense, **more):
    """Corrupted clients that flip signs."""
    attack = compose.make_poisoning(compose.parse_attack("sign-flip", {}), knowledge_of(given, defense, "own"))
    return Adversary(attack, frozenset(given.corrupted), Rng(9), **more)


@pytest.mark.parametrize("protocol", ["fedavg", "dbcl", "baffle", "dp-sgd"])
@pytest.mark.parametrize("secure", ["pairwise-masks", "zero-sum"])
def test_the_model_is_the_one_of_a_plain_mean(protocol, secure):
    """Up to the rounding of masks; and no upload crosses the wire as it is."""
    given = problem()
    _, plain = played(protocol, given)
    _, masked = played(f"{protocol}+{secure}", given)
    a, b = flatten(plain.params), flatten(masked.params)
    moved = (a - flatten(given.init)).norm()
    # Differences of about 1e-4 keep three digits among float masks of size 1; and single precision, in which clients
    # compute them, answers a last bit of W with a thousandth of a difference.
    tolerance = {"baffle": {"pairwise-masks": 0.01, "zero-sum": 0.05}}.get(protocol, {}).get(secure, 1e-3)
    assert float((a - b).norm() / moved) < tolerance
    first = masked.rounds[0]
    assert first.wire is not None
    for i in range(len(first.participants)):
        assert not torch.allclose(first.wire[i].double(), flatten(row(first.ups, i)).double(), atol=1e-3)


@pytest.mark.parametrize("dropout", ["0", "0.3"])
def test_a_poisoned_run_is_the_same_written_down_or_not(dropout):
    """Unwritten rounds are summed without messages."""
    given = problem(clients=6, rounds=6)
    made = compose.make_defense(compose.parse_defense("fedavg+pairwise-masks", {"dropout": dropout}), given.task)
    runs = []
    for watch in (range(6), ()):
        adversary = flipping(given, made)
        runs.append(federation.run(made, given, Rng(0).child("federation"), watch=watch, adversary=adversary))
    written, unwritten = runs
    assert all(r.wire is not None for r in written.rounds)
    assert torch.equal(flatten(written.params), flatten(unwritten.params))
    assert written.failed == unwritten.failed
    assert (unwritten.bytes_up, unwritten.bytes_down) == pytest.approx((written.bytes_up, written.bytes_down))


@pytest.mark.parametrize(("attacked", "written", "made"), [(True, False, 0), (True, True, 3), (False, False, 3)])
def test_messages_are_left_out_where_nobody_reads_or_times_them(monkeypatch, attacked, written, made):
    given, play, calls = problem(), PairwiseMasks.__call__, []
    monkeypatch.setattr(PairwiseMasks, "__call__", lambda *args: calls.append(args) or play(*args))
    defense = compose.make_defense(compose.parse_defense("fedavg+pairwise-masks", {}), given.task)
    adversary = flipping(given, defense) if attacked else None
    watch = range(3) if written else ()
    federation.run(defense, given, Rng(0).child("federation"), watch=watch, adversary=adversary)
    assert len(calls) == made


@pytest.mark.parametrize("simulated", [False, True])
def test_a_client_s_memory_is_measured_unless_an_attacker_simulates(simulated):
    given = problem()
    defense = compose.make_defense(compose.parse_defense("fedavg", {}), given.task)
    adversary = flipping(given, defense, simulated=simulated)
    run = federation.run(defense, given, Rng(0).child("federation"), adversary=adversary)
    assert (run.peak_bytes > 0) is not simulated


@pytest.mark.parametrize("protocol", ["fedavg", "dbcl", "baffle"])
@pytest.mark.parametrize("party", ["server", "eavesdropper"])
@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_who_reads_the_wire_attacks_the_cohort(protocol, party, form):
    defense, run = played(f"{protocol}+pairwise-masks", problem())
    threat = Threat(party, form)
    seen = cut(run.rounds, threat)
    assert all(s.ups is None for s in seen.values())
    found = defense.readings(threat, seen, (0,))
    for reading in found:
        for o in reading.observations:
            assert o.clients == (0, 1, 2, 3)
            assert o.images == 32


def test_a_client_that_drops_out_is_not_in_the_mean():
    given = problem(clients=8, rounds=6)
    _, run = played("fedavg+pairwise-masks", given, {"dropout": "0.15", "threshold": "0.5"})
    left = [set(r.participants) - set(r.averaged) for r in run.rounds]
    assert any(left)
    for r in run.rounds:
        kept = [r.participants.index(c) for c in r.averaged]
        share = torch.tensor([float(given.task.sizes[c]) for c in r.averaged])
        for name, mean in r.mean.items():
            expected = torch.tensordot(share / share.sum(), r.ups[name][kept], dims=1)
            assert torch.allclose(mean, expected, atol=1e-5)


def test_a_round_with_too_few_left_changes_nothing():
    given = problem(clients=4, rounds=8)
    _, run = played("fedavg+pairwise-masks", given, {"dropout": "0.6", "threshold": "1"})
    assert 0 < run.failed <= 8
    assert len(run.rounds) == 8 - run.failed


def test_a_corrupted_client_cannot_send_what_no_encoding_stands_for():
    """An upload of 1e9 ends at the bound, and the run goes on."""
    given = problem()

    class Loud(NoAdversary):
        corrupted = frozenset(given.corrupted)

        def uploads(self, t, cohort, down, ups, receiver=None):
            bad = [i for i, c in enumerate(cohort.clients) if c in self.corrupted]
            return {n: t.index_fill(0, torch.tensor(bad), 1e9) for n, t in ups.items()}

    _, run = played("fedavg+pairwise-masks", given, {"bound": "2"}, Loud())
    first = run.rounds[0]
    bad = first.participants.index(given.corrupted[0])
    honest = sum(
        given.task.sizes[c] / sum(given.task.sizes) * flatten(row(first.ups, i))
        for i, c in enumerate(first.participants)
        if i != bad
    )
    assert torch.allclose(flatten(first.mean) - honest, torch.tensor(2.0), atol=1e-4)


@pytest.mark.parametrize(
    ("defense", "options", "said"),
    [
        ("two-stage+pairwise-masks", {}, "needs every upload"),
        ("fedavg+krum+pairwise-masks", {}, "krum cannot choose"),
        ("baffle+pairwise-masks", {"perturbations": "client"}, "'perturbations' is client"),
        ("baffle+pairwise-masks", {"law": "true"}, "'law' is true"),
    ],
)
def test_what_needs_every_upload_is_refused(defense, options, said):
    given = problem()
    with pytest.raises(UserError, match=said):
        compose.make_defense(compose.parse_defense(defense, options), given.task)


def test_bytes_count_masks_keys_and_shares():
    """4 bytes a difference on the wire with 32 bits, 8 with 64; keys and shares come on top."""
    given = problem(rounds=1)
    given = replace(given, task=given.task)
    sizes = {}
    for bits in ("32", "64"):
        _, run = played("baffle+pairwise-masks", given, {"bits": bits, "bound": "0.01", "directions": "1000"})
        sizes[bits] = run.bytes_up
    assert sizes["64"] - sizes["32"] == 4 * 1000
    assert 4000 < sizes["32"] < 4000 + 1000


def test_a_run_that_outgrows_the_bound_has_diverged():
    """In the first round the bound is too small, and said so; later on the run is one that diverged."""
    given = problem(rounds=60, lr=50.0)
    with pytest.raises(UserError, match=r"option 'bound' is 0\.001, allowed: at least"):
        played("fedavg+pairwise-masks", given, {"bound": "0.001"})
    _, run = played("fedavg+pairwise-masks", given, {"bound": "2"})
    assert run.diverged_at is not None
    assert 0 < run.diverged_at < 60


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_clients_that_rebuild_the_model_survive_failed_rounds(optimizer):
    """With downlink=scalars W goes down anew after a round that gave nothing, and both ends stay equal to the bit."""
    given = problem(clients=4, rounds=12, server_optimizer=optimizer, lr=0.02)
    options = {"directions": "20", "downlink": "scalars", "threshold": "0.75", "dropout": "0.45"}
    defense = compose.make_defense(compose.parse_defense("baffle+pairwise-masks", options), given.task)
    held, opened, clients = [], defense.opened, defense.clients

    def opening(down, memory):
        found = opened(down, memory)
        last[:] = [{n: t.clone() for n, t in found[0].items()}]
        return found

    def working(*given):
        found = clients(*given)
        if len(given[1]) == 4:  # and not where the harness measures one client's step
            held.extend(last)
        return found

    last = []
    defense.opened, defense.clients = opening, working
    run = federation.run(defense, given, Rng(0).child("federation"), watch=range(12))
    assert 0 < run.failed < 12
    assert len(held) == 12
    for r in run.rounds:
        assert all(torch.equal(held[r.index][n], r.params[n]) for n in r.params)


def test_the_average_by_steps_knows_the_steps_of_all_survivors():
    """Dirichlet's clients take different numbers of steps; the longest decides, with a secure sum as without."""
    times = Schedule(rounds=1, batch_size=4, lr=0.01, local_epochs=1)
    model = registry.find("model", "mlp").parse({"widths": "8"})
    law = registry.find("partition", "dirichlet").parse({"alpha": "0.5"})
    given = build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="dirichlet",
            clients=5,
            model_options=model,
            partition_options=law,
            schedule=times,
        ),
        0,
    )
    steps = [times.steps(size) for size in given.task.sizes]
    assert steps[0] != max(steps)
    options = {"ema_per": "step", "ema_warmup": "false", "directions": "5"}
    for name in ("baffle", "baffle+pairwise-masks"):
        _, run = played(name, given, options)
        decay = 0.995 ** max(steps)
        w = {n: decay * given.init[n] + (1 - decay) * t for n, t in run.rounds[0].after.items()}
        assert torch.allclose(flatten(run.params), flatten(w), atol=1e-6)
