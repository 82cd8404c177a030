"""Flower's strategies as defenses: the model is the strategy's own, and that of our rule where we have the same."""

from __future__ import annotations

import pickle
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.agreement import assert_train_alike, poisoned
from helpers.poisoning import problem

from fedarena.cli import main
from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.federation import compose
from fedarena.records.command import command_of
from fedarena.records.store import Store
from fedarena.testing.pretended_cuda import pretend_cuda

pytest.importorskip("flwr", reason="Flower is not installed")

STRATEGY = "flower:flwr.server.strategy."


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")


@pytest.mark.parametrize(
    ("theirs", "options", "ours"),
    [
        ("Krum", {"defense.num_malicious_clients": 2}, "krum"),
        ("Krum", {"defense.num_malicious_clients": 2, "training.local_epochs": 1, "training.lr": 0.1}, "krum"),
        ("FedMedian", {}, "median"),
        ("FedTrimmedAvg", {"defense.beta": 0.25}, "trimmed-mean"),
        ("FedAvg", {"training.weight_decay": 0.1}, "fedavg"),
    ],
)
def test_flower_s_rules_train_as_ours_do(theirs: str, options: dict[str, Any], ours: str) -> None:
    shared = {name: value for name, value in options.items() if name.startswith("training.")}
    assert_train_alike(poisoned(STRATEGY + theirs, **options), poisoned(ours, **shared))


def made(strategy: str, **options: Any) -> tuple[Any, State, Tensors, Cohort]:
    """A defense, the server before the first round, four clients' uploads, and who they are."""
    p = problem()
    task = replace(p.task, sizes=(10, 20, 30, 40), schedule=replace(p.task.schedule, participation=1.0))
    defense = compose.make_defense(compose.parse_defense(strategy, {k: str(v) for k, v in options.items()}), task)
    generator = torch.Generator().manual_seed(0)
    ups = {name: torch.randn(4, *w.shape, generator=generator) for name, w in p.init.items()}
    return defense, State(dict(p.init)), ups, Cohort((0, 1, 2, 3), torch.tensor([10.0, 20.0, 30.0, 40.0]))


def played(defense: Any, state: State, ups: Tensors, cohort: Cohort) -> State:
    after: State = defense.aggregate(state, Broadcast(dict(state.params)), ups, cohort, Rng(0))
    return after


@pytest.mark.parametrize("name", ["FedAdam", "FedYogi", "FedAdagrad"])
def test_a_stateful_strategy_lives_one_run_and_no_longer(name: str) -> None:
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server import strategy as flower

    defense, first, ups, cohort = made(STRATEGY + name, eta=0.05)
    step, start = defense.step_size, [w.numpy() for w in first.params.values()]
    plain = getattr(flower, name)(initial_parameters=ndarrays_to_parameters(start), eta=0.05)
    status = Status(code=Code.OK, message="")
    state, w = first, start
    for t in (1, 2, 3):
        state = played(defense, state, ups, cohort)
        models = [[v - step * ups[key][c].numpy() for key, v in zip(ups, w, strict=True)] for c in range(4)]
        sent = [FitRes(status, ndarrays_to_parameters(m), 10 * (c + 1), {}) for c, m in enumerate(models)]
        w = parameters_to_ndarrays(plain.aggregate_fit(t, [(None, one) for one in sent], [])[0])
        for mine, theirs in zip(state.params.values(), w, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-5, atol=1e-7)
    again = played(defense, first, ups, cohort)  # a new run begins with a new strategy
    assert all(torch.equal(again.params[key], played(defense, first, ups, cohort).params[key]) for key in ups)
    assert not all(torch.equal(again.params[key], state.params[key]) for key in ups)


def test_a_strategy_s_model_stays_on_the_device() -> None:
    defense, state, ups, cohort = made(STRATEGY + "Krum")
    here = played(defense, played(defense, state, ups, cohort), ups, cohort)
    with pretend_cuda():
        there = State({name: w.to("cuda") for name, w in state.params.items()})
        sent = {name: t.to("cuda") for name, t in ups.items()}
        senders = replace(cohort, weights=cohort.weights.to("cuda"))
        after = played(defense, played(defense, there, sent, senders), sent, senders)
        assert {t.device.type for t in [*after.params.values(), after.verdict["used"]]} == {"cuda"}
        assert all(torch.equal(after.params[name].cpu(), here.params[name]) for name in ups)


def test_a_strategy_is_pickled_by_name() -> None:
    defense, *round = made(STRATEGY + "FedAdam", eta=0.05)
    copy = pickle.loads(pickle.dumps(defense))
    one, other = played(defense, *round).params, played(copy, *round).params
    assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("name", "mean", "one"),
    [("FedAvg", True, False), ("FedAvgM", True, False), ("Krum", False, True), ("FedMedian", False, False)],
)
def test_it_knows_whether_the_strategy_averages_or_picks(name: str, mean: bool, one: bool) -> None:
    defense, *round = made(STRATEGY + name)
    assert (defense.takes_mean, defense.picks) == (mean, one)
    assert (defense.why_not_mean() == "") == (mean or one)
    used = played(defense, *round).verdict.get("used")
    wanted = [10, 20, 30, 40] if mean else [0, 0, 0, 1] if one else []
    assert sorted([] if used is None else used.tolist()) == wanted


def test_flower_s_momentum_is_no_mean() -> None:
    assert not made(STRATEGY + "FedAvgM", server_momentum=0.9)[0].takes_mean


def test_a_privacy_attack_reads_a_strategy_s_run_and_is_repeated(tmp_path: Any, capsys: Any) -> None:
    """A record names the library's release, and its command gives the same record."""
    words = ["run", "--defense", STRATEGY + "FedYogi", "--attack", "gradient-estimate", "--rounds", "4", "--quiet"]
    assert main([*words, "--jobs", "1", "--set", "defense.eta=0.02", "--out", str(tmp_path / "one")]) == 0
    (first,) = [r for r in records(tmp_path / "one") if r["form"] == "adaptive" and r["party"] == "server"]
    assert first["metrics"]["cosine"] > 0.99
    assert first["origins"][STRATEGY + "FedYogi"].startswith("flwr 1.")
    assert first["options"]["defense"]["eta"] == 0.02
    again = [*shlex.split(command_of(first))[1:], "--quiet", "--jobs", "1", "--out", str(tmp_path / "two")]
    assert main(again) == 0
    (second,) = [r for r in records(tmp_path / "two") if r["key"] == first["key"]]
    assert second["metrics"] == first["metrics"]


def records(folder: Any) -> list[Any]:
    store = Store(folder)
    return [r for key in store.complete() for r in store.trial(key) if r["defense"] != "fedavg"]


@pytest.mark.parametrize(
    ("defense", "option", "said"),
    [
        ("Krumm", "", "has no attribute 'Krumm'"),
        ("Strategy", "", "is no strategy, allowed"),
        ("DifferentialPrivacyServerSideFixedClipping", "", "needs 'strategy', which is an object"),
        ("FedProx", "", "option 'proximal_mu' is none, allowed: a value"),
        ("FedProx", "defense.proximal_mu=0.1", "the strategy sends the settings {'proximal_mu': 0.1}"),
        ("FedXgbCyclic", "", "fails on made-up models: ValueError: the strategy makes a model of the shapes"),
        ("QFedAvg", "", "fails on made-up models"),
        ("Krum", "defense.beta=0.2", "has no option 'beta'; it knows: num_clients_to_keep, num_malicious_clients"),
        ("Krum", "defense.num_malicious_clients=two", "option 'num_malicious_clients' is 'two', allowed: integer"),
        ("Krum", "defense.min_fit_clients=2", "has no option 'min_fit_clients'"),
        ("FedTrimmedAvg+krum", "", "allowed: the strategy alone"),
        ("FedMedian", "training.server_optimizer=adam", "option 'server_optimizer' is adam"),
        ("FedMedian+pairwise-masks", "", "secure aggregation"),
    ],
)
def test_what_is_no_strategy_or_option_is_refused(defense: str, option: str, said: str, capsys: Any) -> None:
    words = ["run", "--defense", STRATEGY + defense, "--attack", "sign-flip", "--quiet"]
    assert main([*words, *(["--set", option] if option else [])]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_strategy_of_one_s_own_needs_a_module_and_a_class(capsys: Any) -> None:
    for name, said in {"flower:Krum": "allowed: flower:MODULE.CLASS", "flower:nosuch.Krum": "No module named"}.items():
        assert main(["run", "--defense", name, "--attack", "sign-flip"]) == 2
        assert said in capsys.readouterr().err


def test_our_rules_as_a_strategy_are_our_rules_again() -> None:
    options = {"defense.rule": "nnm+krum", "defense.f": 2}
    assert_train_alike(poisoned("flower:fedarena.interop.flower.RuleStrategy", **options), poisoned("nnm+krum"))
