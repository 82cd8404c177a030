"""What the server's own step makes of one upload: it takes off what clients put on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.degenerate import ServerOnly
from helpers.disguises import Checksum, Flat, KeyFromUpload, KeyInside, RoundOrder, RoundPad, SamplesInside
from torch import Tensor
from torch.func import grad

from fedarena.contracts import server_step
from fedarena.contracts.control import relative_error
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Reading
from fedarena.contracts.readings import all_readings
from fedarena.contracts.transcript import Round, Seen, cut
from fedarena.core import registry
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose, rounds
from fedarena.problem.problem import Problem, build
from fedarena.problem.task import Auxiliary
from fedarena.testing.federations import spec_of

VICTIMS = (1, 4)
SERVER = Threat("server", "adaptive")


class PadOfOwnSamples(Flat):
    """Clients add a multiple of the model, and the server needs its own samples to take it off."""

    @classmethod
    def holds(cls, options: Any) -> Auxiliary:
        return Auxiliary(1)

    def hidden(self, up: Tensor, t: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        return up + 10 * torch.linspace(-1, 1, len(up)).to(up)

    def shown(self, sent: Tensor, t: int) -> Tensor:
        return sent - self.own * 10 * torch.linspace(-1, 1, len(sent)).to(sent)

    def direction(self, state: Any, *given: Any) -> Any:
        self.own = float(len(state.auxiliary.images()[1]) > 0)
        return super().direction(state, *given)


class OfTwo(KeyFromUpload):
    """The server's step needs two uploads."""

    def direction(self, state: Any, sent: Any, ups: Any, cohort: Any, rng: Any) -> Any:
        assert len(cohort.clients) > 1
        return super().direction(state, sent, ups, cohort, rng)


class OfDifferent(KeyFromUpload):
    """The server refuses uploads that are all alike."""

    def direction(self, state: Any, sent: Any, ups: Any, cohort: Any, rng: Any) -> Any:
        assert next(iter(ups.values())).unique(dim=0).shape[0] > 1
        return super().direction(state, sent, ups, cohort, rng)


class OneInClear(KeyFromUpload):
    """One tensor stands in clear under its own name beside the pad; it is also what the reading estimates."""

    shown_in: str

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> Any:
        up, memory = super().client(down, batch, memory, noise)
        plain, _ = FedAvg.client(self, down, batch, {}, {})
        bias = self.task.output_bias
        assert bias is not None
        packed = {f"packed.{name}": t for name, t in up.items()}
        return ({bias: plain[bias]} if self.shown_in == "upload" else {}) | packed, memory

    def direction(self, state: Any, sent: Any, ups: Any, cohort: Any, rng: Any) -> Any:
        packed = {name.removeprefix("packed."): t for name, t in ups.items() if name.startswith("packed.")}
        return super().direction(state, sent, packed, cohort, rng)

    def readings(self, threat: Any, seen: Any, victims: Any) -> Any:
        readings = super().readings(threat, seen, victims)
        if self.shown_in == "upload":
            return readings
        bias = self.task.output_bias or ""
        return [
            replace(r, observations=tuple(replace(o, estimate={bias: torch.ones(10)}) for o in r.observations))
            for r in readings
        ]


DISGUISES = (KeyFromUpload, KeyInside, RoundOrder, RoundPad, SamplesInside, Checksum, PadOfOwnSamples, OfTwo)


def played(made: type[Defense] | str, **schedule: Any) -> tuple[Problem, Defense, tuple[Round, ...]]:
    """A short run of a class, or of a defense that is known by name."""
    schedule = {"rounds": 6, "batch_size": 2, **schedule}
    if isinstance(made, str):
        method = compose.parse_defense(made)
        usual = {"model": "mlp", **dict(registry.find("defense", method.name).usual)}
        spec = spec_of(4, **{**schedule, **{name: usual[name] for name in ("model", "loss") if name in usual}})
        problem = build(spec, 0, auxiliary=compose.auxiliary(method))
        defense = compose.make_defense(method, problem.task)
    else:
        problem = build(spec_of(4, model="mlp", **schedule), 0, auxiliary=made.holds(NoOptions()))
        defense = made(NoOptions(), problem.task)
    return problem, defense, rounds.run(defense, problem, Rng(0).child("federation"), watch=VICTIMS).rounds


def step_of(made: type[Defense] | str, threat: Threat = SERVER, **schedule: Any) -> Reading | None:
    problem, defense, written = played(made, **schedule)
    return reading_of(defense, cut(written, threat, problem.data_of(threat)), threat)


def reading_of(defense: Defense, seen: Mapping[int, Seen], threat: Threat = SERVER) -> Reading | None:
    readings = all_readings(defense, threat, seen, VICTIMS)
    assert not isinstance(readings, NotApplicable)
    return next((r for r in readings if r.name == server_step.NAME), None)


@pytest.mark.parametrize("made", DISGUISES)
def test_it_is_the_gradient_whatever_clients_send_in_its_place(made: type[Defense]) -> None:
    problem, defense, written = played(made)
    reading = reading_of(defense, cut(written, SERVER, problem.data_of(SERVER)))
    assert reading is not None
    for o in reading.observations:
        (r,) = (r for r in written if r.index == o.round)
        x, y = r.batches[r.participants.index(o.clients[0])].images()
        truth = grad(problem.task.loss)(r.params, x, y)
        assert relative_error(o.target, truth) < 0.05  # without the entries that hold a key
        assert relative_error(o.simulate(x, torch.nn.functional.one_hot(y, 10).to(x)), truth) < 1e-5


def test_a_single_participant_is_read_too() -> None:
    assert step_of(KeyFromUpload, participation=0.25) is not None


@pytest.mark.parametrize("disguised", [True, False])
def test_momenta_are_read_where_they_are_disguised(disguised: bool) -> None:
    made: type[Defense] = type("Momenta", (KeyFromUpload,), {"no_momentum": ""}) if disguised else FedAvg
    assert (step_of(made, client_optimizer="momentum") is not None) == disguised


def test_after_local_epochs_it_is_the_update_per_step_and_rate() -> None:
    _, defense, written = played(KeyFromUpload, local_epochs=1, batch_size=8, lr=0.1)
    plain = played(FedAvg, local_epochs=1, batch_size=8, lr=0.1)
    disguised = reading_of(defense, cut(written, SERVER))
    (upload,) = all_readings(plain[1], SERVER, cut(plain[2], SERVER), VICTIMS)
    assert disguised is not None
    first, same = disguised.observations[0], upload.observations[0]
    assert first.images == same.images
    assert same.estimate is not None
    assert relative_error(first.target, same.estimate) < 0.2  # models differ a little by what is lost beside a pad


@pytest.mark.parametrize("name", ["krum", "nnm+krum", "centered-clipping"])
def test_an_aggregation_rule_takes_no_part_in_it(name: str) -> None:
    problem, plain, written = played(KeyFromUpload)
    defense = KeyFromUpload(NoOptions(), problem.task, compose.make_rule(compose.parse_defense(name).rest))
    seen = cut(written, SERVER)
    without, reading = reading_of(plain, seen), reading_of(defense, seen)
    assert without is not None
    assert reading is not None
    assert torch.equal(*(next(iter(r.observations[0].target.values())) for r in (without, reading)))


@pytest.mark.parametrize(
    "name",
    ["fedavg", "krum", "fltrust", "dp-sgd", "two-stage", "baffle", "pbpfl", "dbcl", "gradient-noise", "qsgd"],
)
def test_it_is_left_out_where_the_defense_shows_the_same(name: str) -> None:
    assert step_of(name) is None


@pytest.mark.parametrize("shown_in", ["upload", "estimate"])
def test_a_part_in_clear_is_not_the_whole(shown_in: str) -> None:
    assert step_of(type("Part", (OneInClear,), {"shown_in": shown_in})) is not None


@pytest.mark.parametrize("made", [ServerOnly, OfDifferent, "dp-fedavg"])
def test_it_is_left_out_without_a_step_that_tells_of_one_upload(made: type[Defense]) -> None:
    assert step_of(made) is None


@pytest.mark.parametrize("threat", [Threat("server", "paper"), Threat("eavesdropper", "adaptive")])
def test_eavesdroppers_and_the_paper_do_not_take_it(threat: Threat) -> None:
    assert step_of(KeyFromUpload, threat) is None


def test_a_secure_sum_shows_no_single_upload() -> None:
    problem, _, written = played("pairwise-masks")
    defense = compose.make_defense(compose.parse_defense("pairwise-masks"), problem.task)
    assert reading_of(defense, cut(written, SERVER)) is None


def test_the_server_plays_it_with_what_it_kept_of_earlier_rounds() -> None:
    """FetchSGD's step is of the error that it kept; without it, the step would be another."""
    problem, defense, written = played("fetchsgd")
    seen = cut(written, SERVER)
    reading = reading_of(defense, seen)
    nothing = defense.init(problem.init, Rng(0)).extra
    forgetful = reading_of(defense, {t: replace(now, extra=nothing) for t, now in seen.items()})
    assert reading is not None
    assert forgetful is not None
    assert relative_error(forgetful.observations[1].target, reading.observations[1].target) > 0.1
