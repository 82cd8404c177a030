"""What parties read of momentum uploads, in both forms, against the gradients that the harness knows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from fedarena.contracts.control import control_readings, relative_error
from fedarena.contracts.inference import Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, row, scale, stack, weighted_mean
from fedarena.core.threat import Form, NotApplicable, Party, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec, usual_problem
from fedarena.runs.engine import run_groups

BETA = 0.8
FORMS = {"sum": 1.0, "ema": 1 - BETA}


def played(form: str, defense: str = "fedavg", **given: Any) -> tuple[Problem, FedAvg, tuple[Round, ...]]:
    schedule = Schedule(
        **{"rounds": 5, "batch_size": 4, **given},
        client_optimizer="momentum",
        momentum=BETA,
        momentum_form=form,
    )
    model = registry.find("model", "mlp").parse({"widths": "8"})
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=4, model_options=model, schedule=schedule)
    problem = build(spec, 0)
    made = compose.make_defense(compose.parse_defense(defense), problem.task)
    assert isinstance(made, FedAvg)
    return problem, made, federation.run(made, problem, Rng(0).child("federation"), watch=range(5)).rounds


def gradient(problem: Problem, r: Round, clients: tuple[int, ...]) -> Tensors:
    """The mean gradient of clients in a round, by N_c."""
    batches = [r.batches[r.participants.index(c)] for c in clients]
    found = [torch.func.grad(problem.task.loss)(r.params, b.x[0], b.y[0]) for b in batches]
    return weighted_mean(stack(found), torch.tensor([float(problem.task.sizes[c]) for c in clients]))


def read(
    made: FedAvg, rounds: tuple[Round, ...], party: Party, form: Form, victims: tuple[int, ...] = (0, 1, 2, 3)
) -> tuple[Observation, ...]:
    """The protocol's own observations, after a check that the harness's reading agrees with them."""
    threat = Threat(party, form)
    seen = cut(rounds, threat)
    own = made.readings(threat, seen, victims)
    control = control_readings(made, threat, rounds, seen, victims)
    assert not isinstance(own, NotApplicable)
    if isinstance(control, NotApplicable):
        return own[0].observations
    for mine, its in zip(control[0].observations, own[0].observations, strict=True):
        assert mine.clients == its.clients
        assert relative_error(mine.target, its.target) < 1e-5
        assert mine.estimate is not None
        assert its.estimate is not None
        assert relative_error(mine.estimate, its.estimate) < 1e-5
    return own[0].observations


def matched(problem: Problem, o: Observation, r: Round) -> float:
    """How far the true batch is from what was observed, through the observation's own simulator."""
    batches = [r.batches[r.participants.index(c)] for c in o.clients]
    x, y = torch.cat([b.x[0] for b in batches]), torch.cat([b.y[0] for b in batches])
    return relative_error(o.simulate(x, torch.nn.functional.one_hot(y, 10).float()), o.target)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["server", "eavesdropper", "client"])
@pytest.mark.parametrize("defense", ["fedavg", "pairwise-masks"])
def test_the_adaptive_form_takes_the_earlier_momentum_out(form: str, party: Party, defense: str) -> None:
    problem, made, rounds = played(form, defense)
    for o in read(made, rounds, party, "adaptive"):
        r = rounds[o.round]
        truth = gradient(problem, r, o.clients)
        assert relative_error(o.target, scale(FORMS[form], truth)) < 2e-3
        assert o.estimate is not None
        assert relative_error(o.estimate, truth) < 2e-3
        assert matched(problem, o, r) < 2e-3


@pytest.mark.parametrize("form", FORMS)
def test_the_paper_form_takes_the_upload_as_a_gradient(form: str) -> None:
    problem, made, rounds = played(form)
    for o in read(made, rounds, "server", "paper"):
        r = rounds[o.round]
        assert relative_error(o.target, row(r.ups, r.participants.index(o.clients[0]))) == 0
        assert o.estimate == o.target
        first = o.round == 0 and form == "sum"  # the only momentum that is one gradient
        assert (matched(problem, o, r) < 1e-4) == first


def test_without_the_rounds_between_the_momentum_is_unknown() -> None:
    """With a round missing, what is matched is the upload itself; a first upload needs no earlier one."""
    problem, made, rounds = played("ema")
    threat = Threat("server", "adaptive")
    seen = cut(rounds, threat)
    without = {t: s for t, s in seen.items() if t != 1}
    found = made.readings(threat, without, (0, 2, 3))
    assert not isinstance(found, NotApplicable)
    first, unknown, known = found[0].observations
    (client,) = unknown.clients
    assert relative_error(unknown.target, row(rounds[2].ups, rounds[2].participants.index(client))) == 0
    assert matched(problem, unknown, rounds[2]) > 0.1
    assert max(matched(problem, first, rounds[0]), matched(problem, known, rounds[3])) < 1e-4


def test_a_client_that_was_not_sampled_keeps_its_momentum() -> None:
    """The upload before this one may lie several rounds back."""
    problem, made, rounds = played("sum", participation=0.5)
    observations = read(made, rounds, "server", "adaptive", victims=tuple(range(5)))
    gaps = 0
    for o in observations:
        (client,), r = o.clients, rounds[o.round]
        gaps += o.round > 0 and client not in rounds[o.round - 1].participants
        assert matched(problem, o, r) < 1e-4
    assert gaps


def test_the_mean_of_other_clients_is_not_subtracted() -> None:
    """The means of a secure sum belong to different clients in the two rounds."""
    problem, made, rounds = played("sum", "pairwise-masks", participation=0.75)
    seen = cut(rounds, Threat("server", "adaptive"))
    for o in read(made, rounds, "server", "adaptive", victims=(1, 2, 3)):
        now, before = set(seen[o.round].participants), set(seen[o.round - 1].participants)
        assert (matched(problem, o, rounds[o.round]) < 1e-3) == (now == before)
    assert any(set(r.participants) != set(s.participants) for r, s in pairwise(rounds))


def test_a_client_does_not_know_whose_upload_was_picked() -> None:
    """Krum steps by one upload; a client sees the momentum and not whose it is."""
    _, made, rounds = played("ema", "krum", rounds=5)
    threat = Threat("client", "adaptive")
    found = made.readings(threat, cut(rounds, threat), (0, 1, 2, 3))
    assert not isinstance(found, NotApplicable)
    for o in found[0].observations:
        r = rounds[o.round]
        sent = row(r.ups, r.participants.index(r.averaged[0]))
        assert relative_error(o.target, sent) < 1e-3


def test_a_momentum_is_no_gradient() -> None:
    """The sum of two rounds' gradients is what the second upload holds."""
    problem, _, rounds = played("sum")
    one, two = (gradient(problem, rounds[t], (2,)) for t in (0, 1))
    assert relative_error(row(rounds[1].ups, 2), combine(1.0, two, BETA, one)) < 1e-5
    assert flatten(one).norm() > 0


def test_attacked_rounds_are_written_down_with_the_one_before() -> None:
    plain = Schedule(rounds=20)
    sent = replace(plain, client_optimizer="momentum")
    assert Watch.spread("x", 2, 5, 6, plain).written[0] == 5
    assert Watch.spread("x", 2, 5, 6, sent).written[0] == 4
    assert Watch.spread("x", 2, 0, 6, sent).written[0] == 0
    assert Watch.spread("x", 2, 5, 6, sent).victims == Watch.spread("x", 2, 5, 6, plain).victims


@pytest.mark.usefixtures("briefly_alone")
@pytest.mark.parametrize("name", ["analytic", "dlg"])
@pytest.mark.parametrize("form", FORMS)
def test_only_whoever_takes_the_momentum_out_finds_the_sample(name: str, form: str) -> None:
    """One sample a round, server: the paper form finds a mixture of rounds, the adaptive form the sample itself."""
    training = {"rounds": "8", "client_optimizer": "momentum", "momentum": "0.8", "momentum_form": form}
    spec = usual_problem({"model": "mlp"}, {"model": {"widths": "16"}, "training": training})
    attack = compose.parse_attack(name, {"victims": "2", "start": "4", "window": "3"})
    groups = [
        GroupSpec(spec, defense=compose.parse_defense("fedavg"), attack=which, threats=under, seed=0)
        for which, under in ((None, ()), (attack, (Threat("server", "paper"), Threat("server", "adaptive"))))
    ]
    paper, adaptive = run_groups(groups, 1)[1].records
    assert paper["metrics"]["recovered"] == 0
    assert adaptive["metrics"]["recovered"] == 1
