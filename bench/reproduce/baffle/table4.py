"""BAFFLE, Table 4, images of CIFAR's size: memory of a client's round by backpropagation and by forward passes.

The paper reads the GPU's memory, which holds the framework, and does not state the batch. Here the tensors of a round
are counted (`fedarena.defenses.baffle.layer_memory`), at batch 32, the released code's. The ratio cannot be
compared either, since the paper's backpropagation holds about 1 GB of framework, by its own text. MobileNet is
torchvision's mobilenet_v2 with all of its parameters trained; the paper states neither which MobileNet it is nor which
of its parameters count."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.torchvision_import import import_torchvision
from fedarena.defenses.baffle import layer_memory
from fedarena.models.mobilenet_head import fill
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table

BATCH, SHAPE, CLASSES = 32, (3, 32, 32), 10

SETTING = (
    f"MB (10⁶ bytes) of a client's round, batch {BATCH}, 3×32×32; layers: least~most that one layer takes, computed "
    "one at a time; forwards: all layers' perturbed parameters at once; ratios: layers' most and forwards to backprop. "
    "The paper's MB are the GPU's and hold the framework"
)

Numbers = tuple[int, int, int, float]
PAPER: dict[str, Numbers] = {
    "LeNet": (1680, 67, 174, 10.35),
    "WRN-10-2": (1878, 75, 196, 10.43),
    "MobileNet": (2041, 102, 217, 10.63),
}
"""Backpropagation, least, most; the ratio in per cent, as printed."""

CARDS = {"LeNet": "lenet-baffle", "WRN-10-2": "wrn-10-2"}

CPU_ONLY = "it counts bytes of tensors, which are the same everywhere"

FRAMEWORK = "the paper's is the GPU's memory, framework included"
OF_BOTH = "by its text the paper's backpropagation holds about 1 GB of framework, ours tensors alone"


def published(paper: Mapping[str, Numbers]) -> tuple[Published, ...]:
    """The paper's numbers of one size of images, by network."""
    return tuple(
        one
        for model, (backprop, least, most, ratio) in paper.items()
        for one in (
            Published(
                piece=model, paper=backprop, column="backprop", decimals=0, share=False, better="lower", apart=FRAMEWORK
            ),
            Published(
                piece=model, paper=f"{least}~{most}", column="layers", share=False, better="lower", apart=FRAMEWORK
            ),
            Published(piece=model, paper=ratio, column="ratio_%", share=False, better="lower", apart=OF_BOTH),
        )
    )


def row(model: str, of: tuple[Task, Tensors, Batch], paper: Numbers) -> Row:
    """One network's row, of a round's task, parameters and batch."""
    task, params, batch = of
    memory = layer_memory.measure(task, params, batch)
    backprop, least, most, ratio = paper
    return {
        "model": model,
        "parameters": sum(p.numel() for p in params.values()),
        "paper_backprop": backprop,
        "backprop": memory.backprop / 1e6,
        "paper_layers": f"{least}~{most}",
        "layers": f"{memory.smallest / 1e6:.2f}~{memory.largest / 1e6:.2f}",
        "paper_ratio_%": ratio,
        "ratio_%": 100 * memory.largest / memory.backprop,
        "forwards": memory.forwards / 1e6,
        "forwards_ratio_%": 100 * memory.forwards / memory.backprop,
    }


def round_of(
    model: str, seed: int, shape: tuple[int, int, int] = SHAPE, classes: int = CLASSES
) -> tuple[Task, Tensors, Batch]:
    """A network of the table, parameters, and a batch of random images."""
    g = Rng(seed).torch()
    if model in CARDS:
        card = registry.find("model", CARDS[model])
        architecture = card.load()(card.parse({}))
        module: nn.Module = architecture.module(shape, classes)
        params: Tensors = architecture.init(module, g)
    else:
        module = _mobilenet(g, classes)
        params = {name: p.detach() for name, p in module.named_parameters()}
    task = Task(module, input_shape=shape, n_classes=classes, sizes=(BATCH,), schedule=Schedule(batch_size=BATCH))
    y = torch.randint(0, classes, (1, BATCH), generator=g)
    return task, params, Batch(torch.rand(1, BATCH, *shape, generator=g), y)


def _mobilenet(generator: torch.Generator, classes: int) -> nn.Module:
    """Random filters; in training, so that batch statistics are used, but nothing is dropped."""
    with torch.device("meta"):  # within this context it draws nothing from the global generator
        net: nn.Module = import_torchvision().models.mobilenet_v2(num_classes=classes)
    net.to_empty(device="cpu")
    fill(net, generator)
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
            nn.init.zeros_(module.bias)
        module.train(not isinstance(module, nn.Dropout))
    return net


def rows(model: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One network's row; the figures do not depend on the seed."""
    return [row(model, round_of(model, seed), PAPER[model])]


TABLE = Table(
    setting=SETTING,
    pieces=tuple(PAPER),
    rows=rows,
    published=published(PAPER),
    cpu_only=CPU_ONLY,
)
