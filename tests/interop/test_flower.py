"""Our rules and attacks inside Flower: in a real simulation, and in Flower's own objects without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from helpers.flower_federation import CLIENTS, CORRUPTED, ROUNDS, SCALE, start, trained
from helpers.paths import ROOT

import fedarena as fa
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core import registry
from fedarena.core.method_caches import forget_methods
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.torchvision_import import declare_operators
from fedarena.runs.own_objects import name_of

pytest.importorskip("flwr", reason="Flower is not installed")

from flwr.app import Array, ArrayRecord, Context, Message, Metadata, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import SimpleClientManager

from fedarena.interop.flower import RuleStrategy, poison_mod
from fedarena.interop.flower_strategy import Sender


def test_a_simulation_is_what_the_rule_makes_of_poisoned_updates() -> None:
    pytest.importorskip("ray", reason="Flower's simulation is not installed")
    place = {**os.environ, "FLWR_TELEMETRY_ENABLED": "0", "PYTHONPATH": python_path()}
    command = [sys.executable, "-m", "helpers.flower_federation", "nnm+trimmed-mean", "2"]
    done = subprocess.run(command, env=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = [np.array(w) for w in json.loads(done.stdout.splitlines()[-1])]
    for one, other in zip(made, by_hand("nnm+trimmed-mean", 2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def python_path() -> str:
    return os.pathsep.join([str(ROOT / "tests"), *filter(None, sys.path)])


def by_hand(rule: str, f: int) -> list[np.ndarray[Any, Any]]:
    """The model of the simulation's last round, without Flower."""
    model = start()
    for _ in range(ROUNDS):
        ups = [[w - v for w, v in zip(model, trained(model, c), strict=True)] for c in range(CLIENTS)]
        sent = [[-SCALE * u if c in CORRUPTED else u for u in up] for c, up in enumerate(ups)]
        step = fa.aggregate(rule, [dict(enumerate(up)) for up in sent], f)
        model = [w - step[i] for i, w in enumerate(model)]
    return model


# -- the strategy --------------------------------------------------------------------------------------


def aggregated(strategy: RuleStrategy, updates: np.ndarray[Any, Any], t: int = 1) -> np.ndarray[Any, Any]:
    """The step of a strategy on updates [n, d], which arrive in a shuffled order."""
    clients, before = SimpleClientManager(), np.arange(updates.shape[1], dtype=np.float32)
    proxies = [Sender(str(c)) for c in range(len(updates))]
    for proxy in proxies:
        clients.register(proxy)
    strategy.configure_fit(t, ndarrays_to_parameters([before]), clients)
    status = Status(code=Code.OK, message="")
    results = [
        (proxies[c], FitRes(status, ndarrays_to_parameters([before - updates[c]]), 1, {}))
        for c in np.random.default_rng(t).permutation(len(updates))
    ]
    made, _ = strategy.aggregate_fit(t, results, [])
    step: np.ndarray[Any, Any] = before - parameters_to_ndarrays(made)[0]
    return step


UPDATES = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)


@pytest.mark.parametrize("rule", ["krum", "nnm+geometric-median", "mean", "byzfl:TrMean"])
def test_a_strategy_steps_by_the_rule(rule: str) -> None:
    if rule.startswith("byzfl"):
        declare_operators()
        pytest.importorskip("byzfl", reason="ByzFL is not installed")
    np.testing.assert_allclose(aggregated(RuleStrategy(rule, 2), UPDATES), fa.aggregate(rule, UPDATES, 2), atol=1e-5)


def test_a_strategy_s_rule_has_its_memory_and_options() -> None:
    strategy = RuleStrategy("centered-clipping", 2, options={"tau": 0.5})
    first, second = aggregated(strategy, UPDATES), aggregated(strategy, UPDATES, t=2)
    assert not np.allclose(first, second, atol=1e-3)
    assert not np.allclose(first, aggregated(RuleStrategy("centered-clipping", 2, options={"tau": 50.0}), UPDATES))


def test_an_upload_that_is_not_finite_counts_as_zeros() -> None:
    broken, zeros = UPDATES.copy(), UPDATES.copy()
    broken[3, 1], zeros[3] = np.nan, 0
    step = aggregated(RuleStrategy("mean", 0), broken)
    np.testing.assert_allclose(step, zeros.mean(0), atol=1e-5)


def test_a_strategy_refuses_what_it_cannot_do() -> None:
    with pytest.raises(fa.UserError, match="compares with an upload of the server's own data"):
        RuleStrategy("fltrust", 2)
    with pytest.raises(fa.UserError, match="unknown aggregator 'crum'"):
        RuleStrategy("crum", 2)
    with pytest.raises(fa.UserError, match="aggregator krum: 12 uploads a round of which 6"):
        aggregated(RuleStrategy("krum", 6), UPDATES)
    with pytest.raises(fa.UserError, match="f is 12, allowed: an integer from 0 to 11"):
        aggregated(RuleStrategy("mean", 12), UPDATES)
    for f in (-1, "2", None, 1.5):
        with pytest.raises(fa.UserError, match=f"f is {f!r}, allowed: an integer, 0 or more"):
            RuleStrategy("krum", f)  # type: ignore[arg-type]
    with pytest.raises(fa.UserError, match="seed is -1, allowed: an integer from 0"):
        RuleStrategy("krum", 2, seed=-1)
    card = fa.rule("own-mean")(lambda x, f: x.mean(0))
    with pytest.raises(fa.UserError, match=r"^rule is a Card, allowed: a name; one of your own has its card's"):
        RuleStrategy(card, 2)  # type: ignore[arg-type]
    with pytest.raises(fa.UserError, match=r"^attack is a Card, allowed: a name; one of"):
        poison_mod(card)  # type: ignore[arg-type]
    with pytest.raises(fa.UserError, match="corrupted is an int, allowed: the partition ids"):
        poison_mod("sign-flip", corrupted=3)  # type: ignore[arg-type]
    with pytest.raises(fa.UserError, match="a partition id in corrupted is 'a', allowed: an integer, 0 or more"):
        poison_mod("sign-flip", corrupted=("a",))  # type: ignore[arg-type]


# -- the mod -------------------------------------------------------------------------------------------

BEFORE, AFTER = np.array([1.0, 2.0], dtype=np.float32), np.array([1.5, 1.0], dtype=np.float32)


def replied(mod: Any, client: int = 0, kind: str = "train", t: int = 1, state: Any = None) -> np.ndarray[Any, Any]:
    """What a client app with the mod sends back, that has trained BEFORE to AFTER."""
    app = ClientApp(mods=[mod])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        content = {"model": ArrayRecord({"w": Array(AFTER)}), "metrics": MetricRecord({"num-examples": 7})}
        return Message(RecordDict(content), reply_to=message)

    app.evaluate()(train)
    content = RecordDict({"arrays": ArrayRecord({"w": Array(BEFORE)})})
    metadata = Metadata(
        run_id=1,
        message_id="",
        src_node_id=0,
        dst_node_id=client,
        reply_to_message_id="",
        group_id=str(t),
        created_at=0.0,
        ttl=60.0,
        message_type=kind,
    )
    message = Message(content, metadata=metadata)
    state = RecordDict() if state is None else state
    config = {"partition-id": client, "num-partitions": 3}
    context = Context(run_id=1, node_id=client, node_config=config, state=state, run_config={})
    reply = app(message, context)
    assert reply.content["metrics"]["num-examples"] == 7
    sent: np.ndarray[Any, Any] = reply.content["model"]["w"].numpy()
    return sent


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_a_corrupted_client_sends_the_attack_s_upload(scale: float) -> None:
    sent = replied(poison_mod("sign-flip", scale=scale))
    np.testing.assert_allclose(BEFORE - sent, -scale * (BEFORE - AFTER))
    assert sent.dtype == AFTER.dtype


def test_other_clients_and_messages_stay_as_they_are() -> None:
    mod = poison_mod("sign-flip", corrupted=(1, 2))
    assert np.array_equal(replied(mod, client=0), AFTER)
    assert not np.array_equal(replied(mod, client=1), AFTER)
    assert np.array_equal(replied(mod, client=1, kind="evaluate"), AFTER)


def test_draws_differ_by_seed_client_and_round() -> None:
    draws = [
        replied(poison_mod("gaussian", std=1.0, seed=seed), client=client, t=t)
        for seed, client, t in ((0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 2))
    ]
    assert len({draw.tobytes() for draw in draws}) == 4
    assert np.array_equal(draws[0], replied(poison_mod("gaussian", std=1.0)))


class Louder(Poisoning):
    """Every round the upload times the number of rounds so far."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        count = memory.get("count", torch.zeros(1)) + 1
        return {name: count * t for name, t in view.own.items()}, {"count": count}


@pytest.fixture
def own_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Objects that the test makes known are forgotten afterwards."""
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_held", {})
        yield
    forget_methods()


@pytest.mark.usefixtures("own_session")
def test_a_client_s_attack_remembers_its_rounds() -> None:
    """The memory lives in the state that Flower keeps for the client."""
    mod, state = poison_mod(name_of("attack", Louder)), RecordDict()
    ups = [BEFORE - replied(mod, t=t, state=state) for t in (1, 2, 3)]
    np.testing.assert_allclose(np.stack(ups), np.outer([1, 2, 3], BEFORE - AFTER))


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("mimic", "it needs more than the client's own upload"),
        ("steer", "it needs more than the client's own upload"),
        ("min-max", "over the corrupted clients' own uploads, and there is only 1"),
        ("label-flip", "it needs more than the client's own upload"),
        ("dlg", "allowed: an attack on uploads"),
        ("sign-flop", "did you mean sign-flip"),
    ],
)
def test_an_attack_that_needs_more_is_refused(attack: str, said: str) -> None:
    with pytest.raises(fa.UserError, match=said) as caught:
        poison_mod(attack)
    assert "\n" not in str(caught.value)


def test_an_attack_that_is_to_be_tuned_is_refused() -> None:
    with pytest.raises(fa.UserError, match="needs more than"):
        poison_mod("sign-flip", tune=3)
