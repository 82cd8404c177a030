"""Kernels keep the clients of a secure sum apart: more of their samples come back than from one imprint of all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers import malicious

EXACT = 1e-3
BLOCKS = {"widths": "64", "channels": "20"}
"""Channels for four clients: four kernels of stride 2 each, and a constant."""


def near(attack: str, defense: str, within: float, **problem: Any) -> float:
    """The share of samples that come back."""
    challenge = malicious.challenge(attack, defense, options={"victims": "2"}, **problem)
    off = torch.cat(malicious.errors(malicious.answer(attack, challenge), challenge))
    return float((off < within).float().mean())


def test_more_of_a_secure_sum_comes_back_than_with_one_imprint() -> None:
    """At the same number of units, of 32 samples of four clients."""
    sent = {"clients": 4, "batch_size": 8, "model": "cnn"}
    apart = near("loki", "pairwise-masks", EXACT, model_options=BLOCKS, **sent)
    together = near("imprint", "pairwise-masks", EXACT, model_options={"block": "64"}, **sent)
    assert apart > max(0.6, together + 0.2)


def test_it_reads_sums_of_updates_after_local_steps() -> None:
    """Of four clients that take two steps each; an imprint's columns do not stay alike."""
    sent = {"clients": 4, "batch_size": 4, "local_epochs": 1, "local_samples": 8, "model": "cnn"}
    apart = near("loki", "pairwise-masks", 0.05, model_options=BLOCKS, **sent)
    together = near("imprint", "pairwise-masks", 0.05, model_options={"block": "64"}, **sent)
    assert apart > max(0.6, together + 0.2)


def test_every_client_gets_kernels_of_its_own_and_the_rest_alike() -> None:
    challenge = malicious.challenge("loki", "pairwise-masks", clients=4, model="cnn", model_options=BLOCKS)
    seen = challenge.view.observations[0]
    assert (len(seen.clients), seen.images) == (4, 16)
    weight = seen.target["fc1.weight"].reshape(64, 4, 5, 16)
    assert bool(weight.any(0).flatten(1).any(1).all())  # something of every client
    assert seen.sent is not None
    assert int(seen.sent["conv1.weight"].flatten(1).any(1).sum()) == 4


def test_the_simulator_gives_what_the_clients_sent() -> None:
    """Of the true samples, through the different messages."""
    challenge = malicious.challenge("loki", "pairwise-masks", clients=3, model="cnn", model_options=BLOCKS)
    for (x, y), seen in zip(challenge.answers.truths, challenge.view.observations, strict=True):
        played = seen.simulate(x, torch.nn.functional.one_hot(y, 10).float())
        for name, t in seen.target.items():
            assert torch.allclose(played[name], t, atol=1e-5 * float(t.abs().max()) + 1e-9), name


def test_clients_share_a_block_where_channels_are_few() -> None:
    """The usual network has channels for one, without a constant channel: what is read is one imprint of all."""
    assert near("loki", "pairwise-masks", EXACT, clients=2, model="cnn", model_options={"widths": "64"}) > 0.4


def test_a_server_that_sees_uploads_reads_one_by_two_convolutions() -> None:
    assert near("loki", "fedavg", EXACT, model="cnn", model_options={"widths": "64"}) > 0.8


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [
        ("mlp", {}, "does not begin with a convolution"),
        ("lenet-dlg", {}, "all pixels are passed on by"),
        ("cnn", {"channels": "3"}, "all pixels are passed on by 4 or more"),
        ("cnn", {"norm": "group", "channels": "8"}, "a norm"),
    ],
)
def test_models_that_do_not_pass_pixels_on_are_no_result(model: str, options: dict[str, str], why: str) -> None:
    assert why in malicious.reason("loki", model=model, model_options=options)


def test_the_gain_keeps_columns_alike_after_local_steps() -> None:
    sent = {
        "clients": 2,
        "batch_size": 4,
        "local_epochs": 1,
        "local_samples": 8,
        "model": "cnn",
        "model_options": BLOCKS,
    }
    answers = {}
    for gain in ("0.005", "1"):
        challenge = malicious.challenge("loki", options={"gain": gain}, **sent)
        guess = malicious.answer("loki", challenge, {"gain": gain})
        answers[gain] = float((torch.cat(malicious.errors(guess, challenge)) < 0.05).float().mean())
    assert answers["0.005"] > answers["1"] + 0.3
