"""What everybody knows of a model: its layers in the order in which they are computed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fedarena.core.registry import find
from fedarena.federation import compose
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Task


class OutputFirst(nn.Module):
    """Registers its output before the layer below it, and a layer that it never computes after both."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.hidden, self.unused = nn.Linear(8, 3), nn.Linear(12, 8), nn.Linear(2, 2)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.drop(self.norm(self.hidden(x))).relu())
        return out


def test_layers_stand_in_the_order_in_which_they_are_computed() -> None:
    model = OutputFirst()
    task = Task(model, input_shape=(12,), n_classes=3, sizes=(40,) * 3, schedule=Schedule(rounds=2, batch_size=4))
    before = torch.get_rng_state()
    assert [name for name, _ in task.layers] == ["unused", "hidden", "out"]
    assert task.output_bias == "out.bias"
    assert task.layers[-1][1] is model.out
    assert torch.equal(torch.get_rng_state(), before)
    assert int(model.norm.num_batches_tracked) == 0
    assert model.training
    dbcl = compose.make_defense(compose.parse_defense("dbcl"), task)
    assert set(dbcl.wire.shapes) == {"hidden.weight", "unused.weight"}  # the output is never sketched


@pytest.mark.parametrize("name", ["mlp", "lenet-dlg", "lenet-baffle", "resnet", "vit", "wrn-10-2"])
def test_the_harness_s_own_models_register_their_output_last(name: str) -> None:
    task = build(
        ProblemSpec("digits", model=name, partition="iid", clients=2, model_options=find("model", name).parse({})), 0
    ).task
    named = [n for n, m in task.model.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    assert task.layers[-1][0] == named[-1]
    assert {n for n, _ in task.layers} == set(named)
