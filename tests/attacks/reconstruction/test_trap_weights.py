"""Units that few samples activate: more of a batch comes back than from an honest model."""

from __future__ import annotations

from typing import Any

import torch
from helpers import malicious

EXACT = 1e-3


def exact(attack: str, **problem: Any) -> float:
    """The share of samples that come back exactly."""
    challenge = malicious.challenge(attack, batch_size=8, model_options={"widths": "64"}, **problem)
    off = torch.cat(malicious.errors(malicious.answer(attack, challenge), challenge))
    return float((off < EXACT).float().mean())


def test_more_of_a_batch_comes_back_than_from_an_honest_model() -> None:
    """The same rounds and samples, read in the same way."""
    assert exact("trap-weights") > max(0.7, exact("analytic", party="server") + 0.3)


def test_a_unit_is_active_for_one_sample_in_a_batch() -> None:
    challenge = malicious.challenge("trap-weights", batch_size=8, model_options={"widths": "128"})
    shares = []
    for x, seen in zip(malicious.truths(challenge), challenge.view.observations, strict=True):
        assert seen.sent is not None
        shares.append(float((x @ seen.sent["fc1.weight"].T + seen.sent["fc1.bias"] > 0).float().mean()))
    assert 0.06 < sum(shares) / len(shares) < 0.2  # 1/8


def test_a_sum_of_clients_lets_fewer_samples_through() -> None:
    """The share is that of all samples behind what is read."""
    one = malicious.challenge("trap-weights", clients=4, model_options={"widths": "128"}).view.observations[0]
    many = malicious.challenge("trap-weights", "pairwise-masks", clients=4, model_options={"widths": "128"})
    seen = many.view.observations[0]
    assert (one.images, seen.images) == (4, 16)
    assert one.sent is not None
    assert seen.sent is not None
    assert bool((seen.sent["fc1.bias"] <= one.sent["fc1.bias"]).all())
    off = torch.cat(malicious.errors(malicious.answer("trap-weights", many), many))
    assert float((off < EXACT).float().mean()) > 0.5


def test_the_scale_of_positive_weights_is_an_option() -> None:
    sent = malicious.challenge("trap-weights", options={"scale": "0.5"}).view.observations[0].sent
    assert sent is not None
    rows = sent["fc1.weight"]
    assert float(rows.clamp_min(0).sum() / -rows.clamp_max(0).sum()) < 0.6


def test_a_convolution_at_the_beginning_is_no_result() -> None:
    assert "convolutional" in malicious.reason("trap-weights", model="lenet-dlg")
