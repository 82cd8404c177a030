"""A server's first layer sorts a batch into bins: who is alone in a bin comes back, and nobody else."""

from __future__ import annotations

import pytest
import torch
from helpers import malicious
from torch import Tensor

from fedarena.attacks.reconstruction.imprint import bins, imprinted
from fedarena.core.rng import Rng
from fedarena.core.threat import Party
from fedarena.goals.challenge import Challenge
from fedarena.goals.metrics.reconstruction import reconstruction_metrics

WIDE = {"widths": "128"}
EXACT = 1e-3


def alone(challenge: Challenge) -> list[tuple[Tensor, Tensor]]:
    """Which samples share their bin with no other, by their brightness and the thresholds that were sent, and which
    surely share it: digits have few levels of brightness, and some lie on a threshold."""
    of_round = []
    for x, seen in zip(malicious.truths(challenge), challenge.view.observations, strict=True):
        assert seen.sent is not None
        weight, bias = seen.sent["fc1.weight"][0], seen.sent["fc1.bias"]
        over = (x @ weight)[:, None] + bias
        of_bin, clear = (over > 0).sum(1), over.abs().min(1).values > 1e-4
        single = torch.tensor([int((of_bin == b).sum()) == 1 and int(b) > 0 for b in of_bin])
        of_round.append((single & clear, ~single & clear))
    return of_round


@pytest.mark.parametrize(("defense", "clients"), [("fedavg", 2), ("pairwise-masks", 4), ("median", 5)])
def test_samples_alone_in_their_bins_come_back_exactly(defense: str, clients: int) -> None:
    challenge = malicious.challenge("imprint", defense, clients=clients, model_options=WIDE)
    errors = malicious.errors(malicious.answer("imprint", challenge), challenge)
    lonely = alone(challenge)
    assert sum(int(single.sum()) for single, _ in lonely) > 0.4 * sum(map(len, errors))
    for off, (single, shared) in zip(errors, lonely, strict=True):
        assert bool((off[single] < EXACT).all())
        assert bool((off[shared] > EXACT).all())


def test_a_block_in_front_of_a_convolutional_network_is_read_as_well() -> None:
    made = {"model": "cnn", "model_options": {"block": "128"}, "clients": 4}
    challenge = malicious.challenge("imprint", "pairwise-masks", **made)
    off = torch.cat(malicious.errors(malicious.answer("imprint", challenge), challenge))
    assert float((off < EXACT).float().mean()) > 0.4


def exact(attack: str, party: Party) -> float:
    """The share of batches of 16 behind 64 units that comes back exactly."""
    challenge = malicious.challenge(attack, batch_size=16, model_options={"widths": "64"}, party=party)
    off = torch.cat(malicious.errors(malicious.answer(attack, challenge), challenge))
    return float((off < EXACT).float().mean())


def test_it_reads_what_an_honest_server_cannot() -> None:
    """Few units of an honest model are active for one sample alone."""
    assert exact("imprint", "malicious-server") > max(0.4, 2 * exact("analytic", "server"))


def test_all_columns_of_the_second_layer_are_one() -> None:
    params = {
        "a.weight": torch.zeros(8, 6),
        "a.bias": torch.zeros(8),
        "b.weight": torch.zeros(3, 8),
        "b.bias": torch.zeros(3),
    }
    inputs = torch.rand(50, 6, generator=torch.Generator().manual_seed(0))
    set_ = imprinted(params, "a", "b", inputs, Rng(0))
    assert torch.equal(set_["b.weight"], set_["b.weight"][:, :1].expand(3, 8))
    counts = (inputs @ set_["a.weight"].T + set_["a.bias"] > 0).sum(0)
    assert counts.tolist() == sorted(counts.tolist(), reverse=True)
    assert counts[0] == 50
    assert counts[-1] == pytest.approx(50 / 8, abs=2)
    assert torch.equal(set_["b.bias"], params["b.bias"])


def test_bins_are_differences_of_neighbours() -> None:
    samples = torch.tensor([[1.0, 2.0, 1.0], [5.0, 3.0, 1.0]], dtype=torch.float64)
    rows = torch.stack([samples.sum(0), samples[1], samples[1], torch.zeros(3)])
    found = bins(rows)
    assert len(found) == 2
    assert {tuple(row.tolist()) for row in found} == {tuple(s.tolist()) for s in samples}


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [("lenet-dlg", {}, "convolutional"), ("mlp", {"bias": "false"}, "no biases")],
)
def test_models_that_it_cannot_set_are_no_result(model: str, options: dict[str, str], why: str) -> None:
    assert why in malicious.reason("imprint", model=model, model_options=options)


def test_a_client_could_notice_it() -> None:
    challenge = malicious.challenge("imprint", model_options=WIDE)
    metrics = challenge.metrics
    assert metrics["check_alike"] == 1
    assert metrics["check_alike_honest"] == metrics["check_dead_honest"] == metrics["check_norm_honest"] == 0


@pytest.mark.parametrize("attack", ["imprint", "trap-weights", "inconsistent-models"])
def test_without_a_prior_less_of_a_sketched_digit_is_filled_in(attack: str) -> None:
    challenge = malicious.challenge(attack, "dbcl", batch_size=1, clients=3)
    psnr = {}
    for prior in ("none", "population"):
        guess = malicious.answer(attack, challenge, {"prior": prior})
        psnr[prior] = reconstruction_metrics(guess, challenge.answers)["psnr"]
    assert psnr["none"] < psnr["population"] - 3
