"""The control reading: what the harness reads of messages, whatever names and shapes their tensors have."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.contracts.control import control_readings, like_parameters, relative_error
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import FORMS, PARTIES, Form, NotApplicable, Party, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch


def problem() -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    schedule = Schedule(rounds=3, batch_size=4)
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=6, model_options=model, schedule=schedule)
    return build(spec, 0)


def played(defense: str) -> tuple[FedAvg, tuple[Round, ...]]:
    given = problem()
    made = compose.make_defense(compose.parse_defense(defense), given.task)
    assert isinstance(made, FedAvg)
    return made, federation.run(made, given, Rng(0).child("federation"), watch=range(3)).rounds


def read(defense: FedAvg, rounds: tuple[Round, ...], party: Party, form: Form) -> tuple[Observation, ...]:
    """The observations of the first two rounds; none where there is no control reading."""
    threat = Threat(party, form)
    readings = control_readings(defense, threat, rounds, cut(rounds, threat), (0, 1))
    return () if isinstance(readings, NotApplicable) else readings[0].observations


@pytest.mark.parametrize("defense", ["fedavg", "mean", "pairwise-masks"])
@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("form", FORMS)
def test_a_plain_protocol_is_read_as_it_reads_itself(defense: str, party: Party, form: Form) -> None:
    made, rounds = played(defense)
    own = made.readings(Threat(party, form), cut(rounds, Threat(party, form)), (0, 1))
    assert not isinstance(own, NotApplicable)
    found = read(made, rounds, party, form)
    assert len(found) == 2
    for mine, its in zip(found, own[0].observations, strict=True):
        assert (mine.round, mine.clients, mine.images) == (its.round, its.clients, its.images)
        assert relative_error(mine.target, its.target) < 1e-5


@pytest.mark.parametrize("rule", ["krum", "median"])
def test_a_client_reads_nothing_where_the_server_does_not_step_by_the_mean(rule: str) -> None:
    made, rounds = played(rule)
    assert read(made, rounds, "client", "adaptive") == ()
    assert read(made, rounds, "server", "adaptive") != ()


class Renamed(FedAvg):
    """FedAvg that sends everything as one vector under a name of its own, beside a number that says nothing."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return {"all of it": flatten(up), "count": torch.tensor([3])}, memory


@pytest.mark.parametrize("form", FORMS)
def test_names_and_shapes_hide_nothing(form: Form) -> None:
    made, rounds = played("fedavg")
    packed = [replace(r, ups={"all of it": torch.cat([t.flatten(1) for t in r.ups.values()], 1)}) for r in rounds]
    hidden = read(Renamed(made.options, made.task), tuple(packed), "server", form)
    for mine, its in zip(hidden, read(made, rounds, "server", form), strict=True):
        assert relative_error(mine.target, its.target) < 1e-6
        x, y = torch.rand(4, 1, 8, 8, generator=Rng(1).torch()), torch.eye(10)[:4]
        assert relative_error(mine.simulate(x, y), its.simulate(x, y)) < 1e-5


def test_a_message_of_another_size_is_only_matched_through_the_client_step() -> None:
    made, rounds = played("fedavg")
    short = tuple(replace(r, ups={"some": next(iter(r.ups.values()))[:, :5]}) for r in rounds)
    assert read(made, short, "server", "paper") == ()
    (first, _) = read(made, short, "server", "adaptive")
    assert set(first.target) == {"some"}
    assert first.estimate is None


def test_integers_are_no_part_of_a_message() -> None:
    task = problem().task
    params = {name: p.detach() for name, p in task.model.named_parameters()}
    odd: Tensors = {"seed": torch.tensor(3), "w": flatten(params)}
    assert relative_error(like_parameters(task, odd), params) == 0
    assert set(like_parameters(task, {"seed": torch.tensor(3), "w": torch.zeros(2)})) == {"w"}


def test_tensors_that_cannot_be_compared_are_infinitely_far_apart() -> None:
    one = {"a": torch.ones(2)}
    assert relative_error(one, one) == 0
    for other in ({"b": torch.ones(2)}, {"a": torch.ones(3)}, {}):
        assert relative_error(other, one) == float("inf")
    assert relative_error({"a": torch.tensor([1.0, float("nan")])}, one) == float("inf")
