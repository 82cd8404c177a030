"""Statistics of batch normalisation beside uploads: what they are, who sees them, and who cannot send them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from helpers.statistics import ROUNDS, SMALL, normalised
from torch import Tensor, nn
from torch.func import vmap

from fedarena.contracts.active_inference import ActiveInference
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, nbytes, row
from fedarena.core.threat import EVERYONE, Form, NotApplicable, Party, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import TranscriptFolder
from fedarena.federation.tampered_run import TamperedRun, tampered_run
from fedarena.problem.problem import build
from fedarena.problem.task import Batch
from fedarena.records.saved_transcript import read_transcript
from fedarena.records.transcript_files import write_transcript
from fedarena.testing.federations import spec_of

MOMENTUM = 0.1


def from_running_statistics(run: FinishedRun, r: Round, client: int) -> Tensors:
    """The slow way: a client trains with running statistics, and the server solves those for the batch's.

    after = (1 − m)·before + m·batch, with a variance of n' values that was divided by n' − 1.
    """
    model = deepcopy(run.problem.task.model).double()
    norms = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    counts: dict[str, int] = {}
    for name, layer in norms.items():
        tracked = nn.BatchNorm2d(layer.num_features, affine=False, momentum=MOMENTUM).double()
        tracked.running_mean = torch.randn(layer.num_features, generator=Rng(1).torch()).double()
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, tracked)

        def count(layer: nn.Module, given: tuple[Tensor, ...], name: str = name) -> None:
            counts[name] = given[0].numel() // given[0].shape[1]

        tracked.register_forward_pre_hook(count)
    model.load_state_dict({name: p.double() for name, p in r.params.items()}, strict=False)
    before = {name: t.clone() for name, t in model.named_buffers()}
    model.train()(r.batches[r.participants.index(client)].x[0].double())
    after = dict(model.named_buffers())
    found: Tensors = {}
    for name in norms:
        mean, variance = (
            (after[f"{name}.{kind}"] - (1 - MOMENTUM) * before[f"{name}.{kind}"]) / MOMENTUM
            for kind in ("running_mean", "running_var")
        )
        found |= {f"{name}.mean": mean, f"{name}.variance": variance * (counts[name] - 1) / counts[name]}
    return found


@pytest.fixture(scope="module")
def run() -> FinishedRun:
    return normalised()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("model", ["cnn", "lenet-baffle"])
def test_they_are_what_a_server_solves_running_statistics_for(model: str, batch: int) -> None:
    options = {"norm": "batch"} if model == "lenet-baffle" else SMALL
    played = normalised(model=model, options=options, batch_size=batch, rounds=2)
    for r in played.run.rounds:
        for i, client in enumerate(r.participants):
            wanted, sent = from_running_statistics(played, r, client), row(r.statistics, i)
            assert list(sent) == list(wanted) == [f"norm{k}.{what}" for k in (1, 2) for what in ("mean", "variance")]
            for name, t in wanted.items():
                torch.testing.assert_close(sent[name].double(), t, rtol=1e-4, atol=1e-5)


def seen_of(run: FinishedRun, threat: Threat) -> list[Observation]:
    found = run.readings(threat, cut(run.run.rounds, threat, run.problem.data_of(threat)), range(ROUNDS))
    return [] if isinstance(found, NotApplicable) else [o for reading in found for o in reading.observations]


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_who_reads_uploads_has_the_victim_s_and_simulates_them(run: FinishedRun, party: Party) -> None:
    observations = seen_of(run, Threat(party, "adaptive"))
    assert len(observations) == ROUNDS
    for o in observations:
        r, statistics = run.round(o.round), o.statistics
        assert statistics is not None
        sent = row(r.statistics, r.participants.index(o.clients[0]))
        assert all(torch.equal(statistics.target[name], t) for name, t in sent.items())
        x = run.truth(o)[0]
        for name, t in statistics.simulate(x).items():
            torch.testing.assert_close(t, sent[name])


@pytest.mark.parametrize("party", get_args(Party))
@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_who_reads_no_uploads_sees_none(run: FinishedRun, party: Party, form: Form) -> None:
    threat = Threat(party, form)
    views = cut(run.run.rounds, threat).values()
    assert all((seen.statistics is not None) == threat.visibility.ups for seen in views)


@pytest.mark.parametrize("threat", [Threat("client", "adaptive"), Threat("client", "paper"), Threat("server", "paper")])
def test_clients_are_given_none_nor_is_the_paper_form(run: FinishedRun, threat: Threat) -> None:
    """The paper form takes a message for a plain gradient."""
    observations = seen_of(run, threat)
    assert observations
    assert all(o.statistics is None for o in observations)


def test_nobody_has_any_where_clients_do_not_send_them() -> None:
    plain = normalised(batch_statistics=False)
    assert not any(r.statistics for r in plain.run.rounds)
    for party in ("server", "eavesdropper"):
        observations = seen_of(plain, Threat(party, "adaptive"))
        assert observations
        assert all(o.statistics is None for o in observations)


def test_they_change_neither_the_model_nor_the_uploads_but_the_bytes(run: FinishedRun) -> None:
    plain = normalised(batch_statistics=False)
    for r, other in zip(run.run.rounds, plain.run.rounds, strict=True):
        assert all(torch.equal(t, other.ups[name]) for name, t in r.ups.items())
        assert all(torch.equal(t, other.after[name]) for name, t in r.after.items())
    more = run.run.bytes_up - plain.run.bytes_up
    assert more == nbytes(row(run.run.rounds[0].statistics, 0)) == 4 * 2 * (8 + 16)


def test_other_samples_have_others(run: FinishedRun) -> None:
    o, other, *_ = seen_of(run, Threat("server", "adaptive"))
    assert o.statistics is not None
    for name, t in o.statistics.simulate(run.truth(other)[0]).items():
        assert (t - o.statistics.target[name]).norm() > 0.01 * t.norm()


def test_several_candidates_are_simulated_as_one_by_one(run: FinishedRun) -> None:
    (o, *_) = seen_of(run, Threat("server", "adaptive"))
    assert o.statistics is not None
    candidates = torch.rand(4, *run.truth(o)[0].shape, generator=Rng(2).torch())
    together = vmap(o.statistics.simulate)(candidates)
    for i, one in enumerate(candidates):
        for name, t in o.statistics.simulate(one).items():
            torch.testing.assert_close(together[name][i], t)


@pytest.mark.parametrize("defense", ["krum", "trimmed-mean"])
def test_a_rule_sees_uploads_without_them(defense: str) -> None:
    with_them, without = normalised(defense), normalised(defense, batch_statistics=False)
    assert all(torch.equal(t, without.run.params[name]) for name, t in with_them.run.params.items())


@pytest.mark.parametrize("secure", ["pairwise-masks", "zero-sum"])
def test_a_secure_sum_is_refused(secure: str) -> None:
    with pytest.raises(UserError, match="'batch_statistics' is true, allowed with secure aggregation: false"):
        normalised(secure)


def test_only_protocols_with_plain_steps_send_them() -> None:
    """A bottleneck is in the model, and its clients' steps are plain ones."""
    task = build(spec_of(3, model="cnn", model_options=SMALL, batch_size=3, batch_statistics=True), 0).task
    takes = set()
    for name in registry.registries()["defense"].names():
        card = registry.find("defense", name)
        try:
            card.load()(card.parse({}), task)
        except UserError as error:
            if "its clients do not take plain gradient steps" not in str(error):
                takes.add((name, str(error).partition(",")[0]))
        else:
            takes.add((name, ""))
    assert takes == {("fedavg", ""), ("precode", "option 'model' has no variational bottleneck")}


class Doubled(FedAvg):
    """A protocol with a client step of its own."""

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return {name: 2 * t for name, t in up.items()}, memory


def test_a_client_step_of_one_s_own_does_not_send_another_one_s() -> None:
    task = build(spec_of(3, model="cnn", model_options=SMALL, batch_size=3, batch_statistics=True), 0).task
    with pytest.raises(UserError, match="its clients do not take plain gradient steps"):
        Doubled(None, task)


@pytest.mark.parametrize("norm", ["none", "group"])
def test_a_model_without_batch_normalisation_is_refused(norm: str) -> None:
    with pytest.raises(UserError, match="the model does not normalise by the batch at hand"):
        normalised(options={**SMALL, "norm": norm})


def test_a_malicious_server_s_shaped_rounds_have_none(run: FinishedRun) -> None:
    """They would be those of another model."""
    attack = compose.make_inference(compose.parse_attack("fishing", {"victims": "1"}))
    assert isinstance(attack, ActiveInference)
    shaped = tampered_run(run, attack, [1])
    assert isinstance(shaped, TamperedRun), shaped
    assert run.round(1).statistics
    assert not shaped.round(1).statistics
    threat = Threat("malicious-server", "adaptive")
    found = shaped.readings(threat, cut(run.run.rounds, threat), [1])
    assert not isinstance(found, NotApplicable)
    assert all(o.statistics is None for reading in found for o in reading.observations)


def test_a_saved_transcript_has_them_on_the_wires(run: FinishedRun, tmp_path: Path) -> None:
    spec = replace(run.spec, threats=(Threat("server", "adaptive"),))
    saved = read_transcript(write_transcript(run, [spec], TranscriptFolder(tmp_path, truth=False)))
    for found, r in zip(saved.rounds, run.run.rounds, strict=True):
        assert list(found.statistics) == list(r.participants)
        for i, client in enumerate(r.participants):
            assert all(torch.equal(found.statistics[client][name], t) for name, t in row(r.statistics, i).items())
    names = {party: set(saved.seen_by(party)[0]) if saved.seen_by(party) else set() for party in EVERYONE}
    assert {party for party, seen in names.items() if any(n.startswith("statistics/") for n in seen)} == {
        "server",
        "eavesdropper",
    }
