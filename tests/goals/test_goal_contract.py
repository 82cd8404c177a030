"""What every goal has in common, and what the harness gives those that are after a model: everyone, half the data."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.peers import nodes, peers, trained

from fedarena import goals
from fedarena.contracts.final_model import BlackBox, WhiteBox
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.contracts.peers import NO_SERVER
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import CURIOUS, EVERYONE, PARTIES, NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.population import halves, population
from fedarena.federation.spec import GroupSpec
from fedarena.goals import released_model as released
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch
from fedarena.runs.engine import run_groups
from fedarena.runs.explain import explain


def spec(**changes: object) -> ProblemSpec:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    schedule = Schedule(**{"rounds": 3, "batch_size": 4, **changes})  # type: ignore[arg-type]
    return ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=model, schedule=schedule)


def finished(defense: str = "fedavg", **changes: object) -> FinishedRun:
    made = spec(**changes)
    problem = build(made, 0)
    protocol = compose.make_defense(compose.parse_defense(defense), problem.task)
    run = federation.run(protocol, problem, Rng(0).child("federation"), watch=range(3))
    group = GroupSpec(
        made, defense=compose.parse_defense(defense), attack=compose.parse_attack("dlg"), threats=(), seed=0
    )
    return FinishedRun(group, problem, protocol, run)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return build(spec(), 0)


def test_every_goal_that_an_attack_may_name_is_there_and_no_other() -> None:
    for name in GOAL_NAMES:
        assert isinstance(goals.find(name), InferenceGoal)
        assert set(goals.find(name).parties) in ({*PARTIES}, {*EVERYONE}, {"malicious-server"}, {"corrupted-clients"})


def test_every_attack_s_goal_is_known() -> None:
    for name in registry.registries()["attack"].names():
        method = registry.find("attack", name).load()
        assert getattr(method, "goal", "labels") in GOAL_NAMES


# -- an attacker's own samples -------------------------------------------------------------------------


def test_the_attacker_s_half_and_the_strangers_half_share_nothing(problem: Problem) -> None:
    mine, theirs = halves(problem, 0)
    assert sorted([*mine.tolist(), *theirs.tolist()]) == list(range(len(problem.y_test)))
    assert abs(len(mine) - len(theirs)) <= 1
    assert torch.equal(mine, halves(problem, 0)[0])
    assert not torch.equal(mine, halves(problem, 1)[0])


def test_a_population_is_of_held_out_samples_and_in_the_models_units(problem: Problem) -> None:
    mine, own = halves(problem, 0)[0], population(problem, 0)
    assert torch.equal(own.x, problem.x_test[mine] / problem.scale)
    assert torch.equal(own.y, problem.y_test[mine])
    for name, (_, held) in problem.attributes.items():
        assert torch.equal(own.attributes[name], held[mine])


# -- what clients work on ------------------------------------------------------------------------------


def test_an_experiment_may_say_what_a_client_works_on(problem: Problem) -> None:
    chosen = torch.arange(4)
    given = Batch(problem.inputs(chosen)[None], problem.y[chosen][None])
    protocol = compose.make_defense(compose.parse_defense("fedavg"), problem.task)

    def draw(t: int, client: int) -> Batch | None:
        return given if (t, client) == (1, 1) else None

    usual = federation.run(protocol, problem, Rng(0).child("federation"), watch=range(3))
    told = federation.run(protocol, problem, Rng(0).child("federation"), watch=range(3), draw=draw)
    for a, b in zip(usual.rounds, told.rounds, strict=True):
        for client in (0, 1):
            same = torch.equal(a.batches[client].x, b.batches[client].x)
            assert same != ((a.index, client) == (1, 1))
    assert told.rounds[1].batches[1] is given


# -- the model in the end ------------------------------------------------------------------------------


def test_an_outsider_sees_no_round() -> None:
    assert cut(finished().run.rounds, Threat("outsider", "adaptive")) == {}


def test_the_server_has_what_it_deploys_and_everyone_else_what_is_released() -> None:
    made = finished("pbpfl", loss="mse")
    deployed, given = made.run.params, made.run.release
    assert not torch.equal(flatten(deployed), flatten(given))  # released with its hidden units scaled
    for party in EVERYONE:
        held = released.model_of(made, Threat(party, "paper"))
        assert not isinstance(held, NotApplicable)
        x = made.problem.inputs(torch.arange(50))
        assert torch.allclose(held.model.confidences(x), made.problem.task.outputs(deployed, x).double(), atol=1e-4)
        if isinstance(held.model, WhiteBox):
            assert torch.equal(flatten(held.model.params), flatten(deployed if party == "server" else given))
        assert (held.reading, type(held.model)) == {
            "server": ("deployed", WhiteBox),
            "outsider": ("queries", BlackBox),
        }.get(party, ("release", WhiteBox))


def test_a_model_that_is_not_finite_is_nobody_s() -> None:
    made = finished(lr=1e38)
    assert made.run.diverged_at is not None
    for party in EVERYONE:
        assert isinstance(released.model_of(made, Threat(party, "paper")), NotApplicable)


def test_a_black_box_counts_what_it_is_asked_and_lets_no_gradient_through() -> None:
    made = finished()
    held = released.model_of(made, Threat("outsider", "adaptive"))
    assert not isinstance(held, NotApplicable)
    assert isinstance(held.model, BlackBox)
    x = made.problem.inputs(torch.arange(7)).requires_grad_()
    said = held.model.confidences(x)
    assert not said.requires_grad
    assert torch.allclose(said.sum(1), torch.ones(7, dtype=torch.float64))
    held.model.confidences(x[:2])
    assert held.model.queries == 9


@pytest.mark.parametrize("name", ["d-sgd", "dp-peers", "dbcl-peers"])
def test_without_a_server_a_node_has_its_own_model_and_nobody_else_one(name: str) -> None:
    problem = nodes(6)
    protocol = peers(problem, name, graph="ring")
    made = replace(finished(), problem=problem, defense=protocol, run=trained(problem, protocol))
    held = {party: released.model_of(made, Threat(party, "paper")) for party in EVERYONE}
    own = held.pop("client")
    assert isinstance(own, released.Held)
    assert isinstance(own.model, WhiteBox)
    assert own.reading == "own model"
    assert torch.equal(flatten(own.model.params), flatten(row(made.run.models, CURIOUS)))
    assert not torch.allclose(flatten(own.model.params), flatten(made.run.params))  # the mean, which nobody holds
    assert held["server"] == held["outsider"] == NO_SERVER
    edge = held["eavesdropper"]
    assert isinstance(edge, NotApplicable)
    assert "no finished model crosses the edge" in edge.reason


@pytest.mark.usefixtures("quick_judge")
@pytest.mark.parametrize(
    ("attack", "options"), [("membership-inference", {"shadows": "2"}), ("model-inversion", {"iterations": "5"})]
)
def test_records_without_a_server_say_whose_finished_model_was_attacked(attack: str, options: dict[str, str]) -> None:
    made, method = replace(spec(), clients=4), compose.parse_attack(attack, options)
    threats = tuple(Threat(party, "paper") for party in EVERYONE)
    group = GroupSpec(
        made, defense=compose.parse_defense("d-sgd", {"graph": "ring"}), attack=method, threats=threats, seed=0
    )
    reference = replace(group, defense=compose.parse_defense("fedavg"), attack=None, threats=())
    found = {r["party"]: r for r in run_groups([reference, group], 1)[1].records}
    assert {party: r["status"] for party, r in found.items()} == {p: "ok" if p == "client" else "n/a" for p in EVERYONE}
    assert found["client"]["reading"] == "own model"
    assert found["server"]["reason"] == NO_SERVER.reason
    told = {(one["party"], one["form"]): one["given"] for one in explain(made, group.defense, method, None)["parties"]}
    assert told["client", "paper"].startswith("its own model after the last round")
    for party in ("server", "eavesdropper", "outsider"):
        assert told[party, "paper"] == f"n/a: {found[party]['reason']}"
