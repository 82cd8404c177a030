"""Rounds that fail and runs that stop: what the server's steps, whoever listens, and the reader learn of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.trial import attack, prepare

DROPPING = {"dropout": "0.45", "threshold": "0.75"}


def spec_of(rounds: int, **schedule: Any) -> ProblemSpec:
    times = Schedule(**{"rounds": rounds, "batch_size": 8, "lr": 0.02, **schedule})
    model = registry.find("model", "mlp").parse({"widths": "12"})
    return ProblemSpec("digits", model="mlp", partition="iid", clients=4, model_options=model, schedule=times)


def make(options: dict[str, str], rounds: int, name: str = "baffle", **schedule: Any) -> tuple[Defense, Problem]:
    """A protocol of whose rounds many fail."""
    given = build(spec_of(rounds, **schedule), 0)
    method = compose.parse_defense(f"{name}+pairwise-masks", {**DROPPING, **options})
    return compose.make_defense(method, given.task), given


def play(defense: Defense, given: Problem) -> federation.Run:
    watch = range(given.task.schedule.rounds)
    run = federation.run(defense, given, Rng(0).child("federation"), watch=watch)
    assert 0 < run.failed < len(watch)
    return run


# -- the server's steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fedavg", "baffle"])
def test_adam_s_first_step_is_its_learning_rate_after_failed_rounds(name: str) -> None:
    defense, given = make({}, 9, name, server_optimizer="adam")
    moved = []
    for failures in (0, 3):
        state = State(given.init)
        for _ in range(failures):
            state = defense.skipped(state)
        assert (state.round, state.steps) == (failures, 0)
        after, _ = defense.step(state, {n: torch.full_like(p, 0.5) for n, p in given.init.items()})
        moved.append(flatten(after) - flatten(given.init))
    assert torch.allclose(moved[0], torch.tensor(-0.02), rtol=1e-3)
    assert torch.equal(*moved)


def test_steps_are_the_rounds_that_did_not_fail() -> None:
    defense, given = make({"directions": "5"}, 12)
    seen: list[tuple[int, int]] = []
    step = defense.step

    def stepping(state: State, direction: Tensors) -> Any:
        seen.append((state.round, state.steps))
        return step(state, direction)

    defense.step = stepping  # type: ignore[method-assign]
    run = play(defense, given)
    assert seen == [(r.index, i) for i, r in enumerate(run.rounds)]
    assert seen[-1][0] > seen[-1][1]


def test_the_average_warms_up_by_steps() -> None:
    """The first average has decay 2/11, in whichever round it is taken."""
    defense, given = make({"directions": "5"}, 12)
    r = play(defense, given).rounds[0]
    assert r.mean is not None
    state = defense.skipped(defense.skipped(State(given.init)))
    ups, cohort = {n: t[None] for n, t in r.mean.items()}, Cohort(r.averaged, torch.ones(1))
    after = defense.aggregate(state, Broadcast(r.down), ups, cohort, Rng(0))
    way, whole = (flatten(p) - flatten(state.params) for p in (defense.deployed(after), after.params))
    assert float(way.norm() / whole.norm()) == pytest.approx(9 / 11, rel=1e-3)


# -- who listens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_listeners_begin_anew_where_w_comes_down_in_clear(optimizer: str) -> None:
    """With SGD they read every round that did not fail; what Adam remembers is lost to them at the first gap."""
    options = {"directions": "12", "downlink": "scalars", "precision": "float64"}
    defense, given = make(options, 16, server_optimizer=optimizer)
    rounds = {r.index: r for r in play(defense, given).rounds}
    clear = {t for t, r in rounds.items() if "differences" not in r.down}
    gap = next(t for t in range(17) if t not in rounds)
    expected = set(rounds) if optimizer == "sgd" else clear | set(range(gap))
    assert len(expected) > len(clear) > 1
    threat = Threat("eavesdropper", "adaptive")
    found = defense.readings(threat, cut(list(rounds.values()), threat), range(16))
    assert not isinstance(found, NotApplicable)
    assert {o.round for o in found[0].observations} == expected
    for o in found[0].observations:
        r = rounds[o.round]
        xs, ys = zip(*(r.batches[r.participants.index(c)].images() for c in o.clients), strict=True)
        y = torch.nn.functional.one_hot(torch.cat(ys), 10).float()
        simulated, seen = o.simulate(torch.cat(xs), y)["differences"], o.target["differences"]
        assert float((simulated - seen).norm() / seen.norm()) < 1e-3


# -- the reader -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("attacked", [True, False])
def test_an_outgrown_bound_is_named_with_the_value_that_it_needs(attacked: bool) -> None:
    defense = compose.parse_defense("fedavg+pairwise-masks", {"bound": "2"})
    dlg = compose.parse_attack("dlg", {"victims": "1", "iterations": "1"}) if attacked else None
    threats = (Threat("server", "adaptive"),) if attacked else ()
    (cell,) = prepare(
        GroupSpec(spec_of(60, lr=50.0, batch_size=2), defense=defense, attack=dlg, threats=threats, seed=0)
    )
    record, _ = attack(cell)
    assert record["status"] == "diverged"
    assert "option 'bound' is 2, allowed: at least" in record["reason"]
    t = int(record["reason"].split("in round ")[1].split()[0])
    assert 0 < t < 60
    assert f"the run stopped in round {t}: its numbers are those of {t} of 60 rounds" in record["warnings"]


@pytest.mark.parametrize(("lr", "stopped"), [(1e30, True), (0.1, False)])
def test_parameters_that_overflow_are_the_reason_where_they_are(lr: float, stopped: bool) -> None:
    (cell,) = prepare(
        GroupSpec(spec_of(20, lr=lr), defense=compose.parse_defense("fedavg", {}), attack=None, threats=(), seed=0)
    )
    assert cell.record["status"] == ("diverged" if stopped else "ok")
    assert cell.record["reason"].startswith("a parameter was not finite in round") == stopped
    assert any("of 20 rounds" in mark for mark in cell.record["warnings"]) == stopped


def test_what_failed_rounds_cost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients are handed the model, and share their keys, in rounds that give nothing, too."""
    defense, given = make({"dropout": "0.9", "threshold": "0.9"}, 6)
    run = federation.run(defense, given, Rng(0).child("federation"))
    assert run.failed == 6
    assert run.seconds > 0
    w = sum(t.numel() * t.element_size() for t in given.init.values())
    assert run.bytes_down > w + 4
    assert run.bytes_up > 64
    whole, _ = make({"dropout": "0", "threshold": "0.75"}, 6)
    full = federation.run(whole, given, Rng(0).child("federation"))
    assert run.bytes_up < full.bytes_up
