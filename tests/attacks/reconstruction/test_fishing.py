"""A server's output layer lets one sample of a batch stand out, and this one comes back from convolutional networks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers import malicious

from fedarena.attacks.reconstruction.fishing import class_counts, one_sample
from fedarena.contracts.observation import Observation
from fedarena.core.tensors import flatten
from fedarena.goals.challenge import Challenge

QUICK = {"iterations": "80"}


def lone(challenge: Challenge) -> list[tuple[float, bool]]:
    """For each round the largest |cosine| of what is read with a single sample's own, and whether the class is told."""
    found = []
    for (x, y), seen in zip(challenge.answers.truths, challenge.view.observations, strict=True):
        one = one_sample(challenge.view, seen)
        assert isinstance(one, Observation), one
        target = flatten(one.target).double()
        classes = torch.zeros(1, challenge.view.n_classes)
        gradients = torch.stack([flatten(one.simulate(sample[None], classes)) for sample in x]).double()
        cosines = F.cosine_similarity(gradients, target[None], dim=1)
        nearest = int(cosines.abs().argmax())
        of_class = int(y[nearest]) == one.simulate.target  # type: ignore[attr-defined]
        found.append((float(cosines[nearest]), of_class == (one.simulate.toward > 0)))  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    ("defense", "model", "clients", "batch"),
    [("fedavg", "cnn", 2, 8), ("fedavg", "lenet-dlg", 2, 16), ("pairwise-masks", "lenet-dlg", 4, 8)],
)
def test_one_sample_stands_alone(defense: str, model: str, clients: int, batch: int) -> None:
    """From uploads, and from a secure sum of all: in most rounds the gradient is that of one sample."""
    challenge = malicious.challenge("fishing", defense, model=model, clients=clients, batch_size=batch)
    cosines, told = zip(*lone(challenge), strict=True)
    assert sum(cosine > 0.99 for cosine in cosines) >= 2
    assert all(told)


def best(attack: str, party: Any = "malicious-server", **options: str) -> list[float]:
    """The squared error of the guess that is nearest to any sample of a batch of 16, for each round."""
    made = {"model": "lenet-dlg", "batch_size": 16, "party": party, "options": options}
    challenge = malicious.challenge(attack, **made)
    guess = malicious.answer(attack, challenge, options)
    pairs = zip(guess, malicious.truths(challenge), strict=True)
    return [
        float(torch.cdist(g.images.flatten(1).double(), x.double()).square().min() / x[0].numel()) for g, x in pairs
    ]


def test_it_comes_back_and_without_fishing_none_does() -> None:
    """The same search, of the same rounds."""
    fished = best("fishing", **QUICK)
    honest = best("inverting-gradients", "server", max_batch="16", **QUICK)
    assert sorted(fished)[1] < 0.01
    assert min(honest) > 2 * sorted(fished)[1]


def test_a_class_cut_leaves_the_samples_of_one_class() -> None:
    """Below the output layer what is seen is their mean gradient times their share, and nothing else."""
    challenge = malicious.challenge("fishing", model="cnn", batch_size=8, options={"variant": "class"})
    for (x, y), seen in zip(challenge.answers.truths, challenge.view.observations, strict=True):
        assert seen.sent is not None
        target = int(seen.sent["out.weight"].square().sum(1).argmax())
        of_class = y == target
        labels = F.one_hot(y, 10).float() * of_class[:, None]
        alone = seen.simulate(x, labels - labels.roll(1, 1))  # a target of sum 0 has no softmax
        for name in ("conv1.weight", "fc1.bias"):
            assert torch.allclose(alone[name], seen.target[name], atol=1e-6)
        read = one_sample(challenge.view, seen)
        assert isinstance(read, Observation) == bool(of_class.any())


def test_the_other_biases_show_how_many_samples_each_class_has() -> None:
    """Of ten samples three are of class 2, and their output is 1 at it; without them it is 0 everywhere."""
    y = torch.tensor([2, 2, 2, 0, 0, 1, 3, 3, 3, 5])
    p = torch.full((10, 6), 1 / 5)
    p[:, 2] = 0
    p[:3] = F.one_hot(torch.tensor(2), 6).float()
    off = p - F.one_hot(y, 6)
    assert sorted(class_counts(off.mean(0), 2, 10)) == sorted(y.tolist())
    assert sorted(class_counts(off[5:].mean(0), 2, 5)) == sorted(y[5:].tolist())


def test_the_guess_says_that_the_others_are_blind() -> None:
    challenge = malicious.challenge("fishing", model="cnn", batch_size=8)
    for guess, (_, y) in zip(
        malicious.answer("fishing", challenge, {"iterations": "2"}), challenge.answers.truths, strict=True
    ):
        assert guess.blind == 7
        assert sorted(guess.labels.tolist()) == sorted(y.tolist())


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"loss": "mse"}, "cross-entropy"),
        ({"local_epochs": 1, "local_samples": 8}, "one step"),
        ({"client_optimizer": "momentum"}, "one step"),
    ],
)
def test_trainings_without_a_lone_sample_are_no_result(setting: dict[str, Any], why: str) -> None:
    assert why in malicious.reason("fishing", model="cnn", **setting)


def test_an_output_layer_without_a_bias_is_no_result() -> None:
    assert "no bias" in malicious.reason("fishing", model_options={"bias": "false"})
