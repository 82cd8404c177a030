"""Poisoning where corrupted clients are sampled like others: rounds without any of them, and rounds of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import pytest
import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import Around, Poisoning, RoundView
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite, flatten, row, rows
from fedarena.core.threat import Knowledge
from fedarena.federation import adversary, compose, one_round
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import knowledge_of, why_not
from fedarena.federation.tuning import simulated, tune
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import usual_problem

CLIENTS, CORRUPTED, SAMPLED = 9, 3, 3


INSIDE = {"model-replacement": "label-flip", "neurotoxin": "label-flip"}
"""Wrappers that train on their own need an attack on samples inside."""


def poisoning() -> list[tuple[str, Knowledge]]:
    """Every poisoning attack with each knowledge that it can have; wrappers around a flip of signs."""
    found: list[tuple[str, Knowledge]] = []
    for name in registry.registries()["attack"].names():
        method = registry.find("attack", name).load()
        if issubclass(method, Around):
            found.append((f"{name}+{INSIDE.get(name, 'sign-flip')}", "own"))
        elif issubclass(method, Poisoning):
            found += [(name, knows) for knows in method.knowledge_levels]
    return found


def problem(**training: str) -> Problem:
    given = {"model": "mlp", "clients": str(CLIENTS), "corrupted": str(CORRUPTED)}
    usual = {"rounds": "12", "batch_size": "8", "participation": "0.334", **training}
    return build(usual_problem(given, {"model": {"widths": "8"}, "training": usual}), 0)


def cohorts(p: Problem) -> list[tuple[int, ...]]:
    """No corrupted client, one, all that are, two."""
    bad = list(p.corrupted)
    good = [c for c in range(CLIENTS) if c not in bad]
    chosen = [good[:3], [*bad[:1], *good[2:4]], bad, [*bad[1:], good[5]]]
    return [tuple(sorted(c)) for c in chosen]


MOMENTUM = {"client_optimizer": "momentum", "momentum_form": "ema"}
NEEDS = {"mimic": {"warmup": "2"}, "optimized": {"against": "trimmed-mean"}}
"""Options with which an attack can start in these short runs, whatever it knows."""
AGAINST = {"rank-map": "dp-sgd", "steer": "baffle"}
"""The protocols that attacks on no other one are made for."""


def cases() -> list[tuple[str, Knowledge, str]]:
    """Every attack against the mean and two rules, or against the protocol that it is made for."""
    found: list[tuple[str, Knowledge, str]] = []
    for name, knows in poisoning():
        special = AGAINST.get(name.split("+")[0])
        found += [(name, knows, rule) for rule in ([special] if special else ["fedavg", "median", "centered-clipping"])]
    return found


def made(name: str, knows: Knowledge, p: Problem, rule: str) -> tuple[Defense, Poisoning]:
    outer = name.split("+")[0]
    defense = compose.make_defense(compose.parse_defense(rule), p.task)
    method = compose.parse_attack(name, NEEDS.get(outer, {}))
    return defense, compose.make_poisoning(method, knowledge_of(p, defense, knows))


@pytest.fixture
def finite_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What attacks send is finite before the harness replaces infinities."""

    def checked(sent: Tensors, rows: Sequence[int]) -> Tensors:
        assert finite({name: t[list(rows)] for name, t in sent.items()})
        return sent

    monkeypatch.setattr(adversary, "without_infinities", checked)


@pytest.mark.usefixtures("finite_before")
@pytest.mark.parametrize("training", [{}, MOMENTUM], ids=["gradients", "momenta"])
@pytest.mark.parametrize(("name", "knows", "rule"), cases())
def test_every_attack_plays_every_cohort(
    name: str, knows: Knowledge, rule: str, training: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Honest clients send what the protocol has them send, corrupted ones what is finite, and the run goes on."""
    if rule in AGAINST.values():  # they refuse momentum
        training = {}
    p = problem(**training)
    wanted = cycle(cohorts(p))
    monkeypatch.setattr(one_round, "sample_clients", lambda *_: next(wanted))
    defense, attack = made(name, knows, p, rule)
    assert why_not(attack, tuned=True) is None
    them = adversary.Adversary(attack, frozenset(p.corrupted), Rng(9))
    run = federation.run(defense, p, Rng(0).child("federation"), watch=range(12), adversary=them)
    assert run.diverged_at is None
    assert len(run.rounds) == 12
    memories: dict[int, Tensors] = {}
    for r, cohort in zip(run.rounds, cycle(cohorts(p)), strict=False):
        assert r.participants == cohort
        largest = float(flatten(r.down).abs().max())
        rounded_off = 1e-6 * min(1e3, max(1.0, largest))  # it differs between processors, and more in bent models
        for i, client in enumerate(cohort):
            if client not in p.corrupted and rule not in AGAINST.values():
                up, memories[client] = defense.client(r.down, r.batches[i], memories.get(client, {}), {})
                for kind, t in row(r.ups, i).items():
                    torch.testing.assert_close(t, up[kind], rtol=1e-4, atol=rounded_off)


class Watching(Poisoning):
    """Follows the protocol and keeps what it saw."""

    knowledge_levels = ("omniscient",)
    views: list[RoundView]

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        self.views = [*getattr(self, "views", []), view]
        return view.own, memory


def test_attackers_see_momenta_their_own_and_others() -> None:
    """Uploads in views, against m ← β m + (1 − β) g by hand over the rounds in which each client takes part."""
    p = problem(**MOMENTUM)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    attack = Watching(NoOptions(), knowledge_of(p, defense, "omniscient"))
    them = adversary.Adversary(attack, frozenset(p.corrupted), Rng(9))
    run = federation.run(defense, p, Rng(0).child("federation"), watch=range(12), adversary=them)
    m = dict.fromkeys(range(CLIENTS), torch.zeros(len(flatten(p.init))))
    views = {view.round: view for view in attack.views}
    assert views
    for r in run.rounds:
        for client, batch in zip(r.participants, r.batches, strict=True):
            gradient = torch.func.grad(p.task.loss)(r.params, batch.x[0], batch.y[0])
            m[client] = 0.9 * m[client] + 0.1 * flatten(gradient)
        if (view := views.get(r.index)) is None:
            assert not set(r.participants) & set(p.corrupted)
            continue
        for seen, clients in ((view.own, view.clients), (view.honest, view.honest_clients)):
            truth = torch.stack([m[c] for c in clients]) if clients else torch.zeros(0, len(m[0]))
            torch.testing.assert_close(rows(seen), truth, rtol=1e-4, atol=1e-6)


def test_attackers_simulate_momentum_when_they_choose_their_strength() -> None:
    """The simulated federation has the real one's schedule: its uploads are momenta, too."""
    p = problem(**MOMENTUM, rounds="8")
    _, attack = made("alie", "own", p, "median")
    chosen, report = tune(compose.parse_attack("alie", {"tune": "2", "tune_rounds": "4"}), attack.knowledge, Rng(1))
    assert len(report["tried"]) == 2
    assert simulated(attack.knowledge, 4, Rng(1)).task.schedule.client_momentum
    assert chosen.options.z is not None or report["chosen"] == [None]


def test_too_few_participants_for_a_rule_are_refused_before_the_run() -> None:
    """One participant a round: it may be corrupted, so that no rule with a majority can work."""
    with pytest.raises(UserError, match="median") as refused:
        compose.make_defense(compose.parse_defense("median"), problem(participation="0.12").task)
    assert "\n" not in str(refused.value)


def test_some_round_of_one_participant_is_the_attacker_s_alone() -> None:
    """Without a rule the round is played, and the model is what the corrupted client makes of it."""
    p = problem(participation="0.12", rounds="30")
    defense, attack = made("sign-flip", "own", p, "fedavg")
    them = adversary.Adversary(attack, frozenset(p.corrupted), Rng(9))
    run = federation.run(defense, p, Rng(0).child("federation"), watch=range(30), adversary=them)
    alone = [set(r.participants) <= set(p.corrupted) for r in run.rounds]
    assert 0 < sum(alone) < 30
