"""All clients but one are switched off: a secure sum is this one's upload, and its batch comes back."""

from __future__ import annotations

import pytest
import torch
from helpers import malicious

from fedarena.attacks.reconstruction.inconsistent_models import switched_off, touched
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

WIDE = {"widths": "128"}


@pytest.mark.parametrize("clients", [3, 16])
def test_the_victim_s_batch_comes_back_from_a_secure_sum(clients: int) -> None:
    challenge = malicious.challenge("inconsistent-models", "pairwise-masks", clients=clients, model_options=WIDE)
    assert all(seen.images == 4 and len(seen.clients) == 1 for seen in challenge.view.observations)
    off = torch.cat(malicious.errors(malicious.answer("inconsistent-models", challenge), challenge))
    assert float((off < 1e-3).float().mean()) > 0.7
    assert challenge.metrics["cosine"] > 0.9999


def test_imprint_reads_the_sum_of_all_in_its_place() -> None:
    challenge = malicious.challenge("imprint", "pairwise-masks", clients=3, model_options=WIDE)
    assert all(seen.images == 12 for seen in challenge.view.observations)


def test_a_server_that_sees_uploads_reads_the_victim_s() -> None:
    challenge = malicious.challenge("inconsistent-models", clients=3, model_options=WIDE)
    assert all("out.bias" in seen.target for seen in challenge.view.observations)
    off = torch.cat(malicious.errors(malicious.answer("inconsistent-models", challenge), challenge))
    assert float((off < 1e-3).float().mean()) > 0.7


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_what_is_switched_off_has_a_gradient_of_the_output_bias_alone(model: str) -> None:
    architecture = registry.find("model", model).load()(registry.find("model", model).parse({}))
    task = Task(
        architecture.module((1, 28, 28), 10), input_shape=(1, 28, 28), n_classes=10, sizes=(4,), schedule=Schedule()
    )
    params = architecture.init(task.model, Rng(0).child("init").torch())
    assert touched(task, params) >= {f"{name}.weight" for name, _ in task.layers}
    assert touched(task, switched_off(task, params)) == {task.output_bias}


def test_a_bottleneck_keeps_no_client_in_the_sum() -> None:
    """PRECODE's loss reaches the layers before it, and its numbers those behind it."""
    options = {**WIDE, "bottleneck": "16"}
    challenge = malicious.challenge("inconsistent-models", "precode+pairwise-masks", clients=3, model_options=options)
    for seen in challenge.view.observations:
        assert {name for name, t in seen.target.items() if t.any()} == {"fc1.weight", "fc1.bias"}
    off = torch.cat(malicious.errors(malicious.answer("inconsistent-models", challenge), challenge))
    assert float((off < 1e-3).float().mean()) > 0.7


def test_units_that_are_no_relus_cannot_be_switched_off() -> None:
    options = {"widths": "32", "activation": "sigmoid"}
    assert "switched off" in malicious.reason("inconsistent-models", "pairwise-masks", model_options=options)
