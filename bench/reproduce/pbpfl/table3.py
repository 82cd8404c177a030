"""PBPFL, Table 3: what a round costs a client and the server, beside FedAvg in the same process.

The paper: ResNet-56 on 224×224 images, batch 32, 250 iterations on a GPU; seconds of perturbing the parameters, forward
and backward propagation, and updating the model. Client 91.08 (FedAvg) and 228.06 (PBPFL), server 89.11 and 96.05,
0.85 and 2.55 "MB" up, which are millions of parameters.

Here one client's step on a CPU, one thread: CPU milliseconds, medians over repetitions in which all parts take their
turn, and ratios of these medians. Inputs are random; time does not depend on what they are. Of the arithmetic of
convolutions FedAvg has three parts (forward; backward by inputs and by parameters) and PBPFL seven, so that their ratio
is 7/3 where nothing else counts. PBPFL's client computes with channels last, FedAvg's does not; FedAvg in plain PyTorch
with channels last has a row of its own, since the gain of the layout alone is no merit of the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, nbytes
from fedarena.defenses.pbpfl.protocol import PBPFL
from fedarena.defenses.pbpfl.three_gradients import channels_last
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl.common import FEDAVG, MASKED
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table

SETTING = (
    "one client's round: CPU ms on one thread, medians, and bytes on the wire; ratios are PBPFL's to FedAvg's. "
    "The paper: 224×224, batch 32, a GPU; its client's ratio is of forward and backward together"
)
MEASURED = ("fedavg", "pbpfl", "ratio")


@dataclass(frozen=True)
class Network:
    """A network on inputs of some shape.

    Attributes:
        title: the name by which `--only` selects it. model, options: from the registry. shape: of an input.
        classes: 0 for a regression. batch: samples of the client. repetitions: turns of each part.
    """

    title: str
    model: str
    options: tuple[tuple[str, str], ...]
    shape: tuple[int, ...]
    classes: int = 7
    batch: int = 32
    repetitions: int = 15


_MLP = (("widths", "50,50"), ("bias", "false"))
NETWORKS = (
    Network(
        title="mlp 51-50-50-1, batch 512", model="mlp", options=_MLP, shape=(51,), classes=0, batch=512, repetitions=101
    ),
    Network(title="ResNet-20, 32×32", model="resnet", options=(("depth", "20"),), shape=(3, 32, 32)),
    Network(title="ResNet-56, 32×32", model="resnet", options=(("depth", "56"),), shape=(3, 32, 32)),
    Network(title="ResNet-56, 64×64", model="resnet", options=(("depth", "56"),), shape=(3, 64, 64), repetitions=5),
    Network(
        title="ResNet-56, 224×224 (the paper's)",
        model="resnet",
        options=(("depth", "56"),),
        shape=(3, 224, 224),
        repetitions=3,
    ),
)
BY_TITLE = {network.title: network for network in NETWORKS}

FORWARD, STEP, PLAIN = "client: forward", "client: forward, backward", "the same, FedAvg in plain PyTorch"
MASKS, UPDATE, SERVER = "server: masks", "server: recovery, update", "server: both"
DOWN, UP = "bytes down", "bytes up"
PRINTED = {
    FORWARD: ("2.20", "2.19"),
    STEP: ("228.06", "91.08"),
    SERVER: ("96.05", "89.11"),
    DOWN: ("0.85", "0.85"),
    UP: ("2.55", "0.85"),
}
"""The paper's numbers of PBPFL and of FedAvg: seconds, and MB."""
DECIMALS = {FORWARD: 3, STEP: 3, SERVER: 3, DOWN: 2, UP: 2}
PAPER = {what: round(float(ours) / float(plain), DECIMALS[what]) for what, (ours, plain) in PRINTED.items()}
"""The ratios of these numbers, which the paper does not print."""
PUBLISHED = tuple(
    Published(
        piece=title,
        paper=ratio,
        column="ratio",
        row=(("what", what),),
        decimals=DECIMALS[what],
        share=False,
        better="lower",
        # Bytes do not depend on the network; what is computed does.
        apart=""
        if what in (DOWN, UP) or network is NETWORKS[-1]
        else "another network or smaller images than the paper's",
        derived="/".join(PRINTED[what]),
    )
    for title, network in BY_TITLE.items()
    for what, ratio in PAPER.items()
)


def rows(title: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One network's rows."""
    return measure(BY_TITLE[title], seed, lambda share: progress(share, title))


def measure(network: Network, seed: int, report: Callable[[float], None] = lambda share: None) -> list[Row]:
    """One row a part: FedAvg, PBPFL, and their ratio."""
    client_round = Round(network, seed)
    measured = in_turn(client_round.parts(), network.repetitions, report)
    measured[SERVER] = {name: measured[MASKS][name] + measured[UPDATE][name] for name in (FEDAVG, MASKED)}
    measured |= client_round.wire()
    return [
        {
            "network": network.title,
            "batch": network.batch,
            "what": what,
            "unit": "bytes" if what in (DOWN, UP) else "CPU ms",
            "fedavg": values[FEDAVG],
            "pbpfl": values[MASKED],
            "paper_ratio": PAPER.get(what),
            "ratio": None if what == MASKS else values[MASKED] / values[FEDAVG],  # FedAvg draws no masks
        }
        for what in (FORWARD, STEP, PLAIN, MASKS, UPDATE, SERVER, DOWN, UP)
        for values in (measured[what],)
    ]


class Round:
    """One client's round under both protocols, from the same parameters and on the same samples."""

    def __init__(self, network: Network, seed: int) -> None:
        card, g = registry.find("model", network.model), Rng(seed).torch()
        architecture = card.load()(card.parse(dict(network.options)))
        loss = "mse" if network.classes else "regression"
        module = architecture.module(network.shape, Criterion(loss, network.classes).outputs)
        n = network.batch
        self.state = State(architecture.init(module, g))
        x = torch.rand(1, n, *network.shape, generator=g)
        y = torch.randint(0, network.classes, (1, n), generator=g) if network.classes else torch.rand(1, n, generator=g)
        self.batch = Batch(x, y)
        self.task = Task(
            module,
            input_shape=network.shape,
            n_classes=network.classes,
            sizes=(n,),
            schedule=Schedule(batch_size=n, loss=loss),
        )
        self.defenses: dict[str, Defense] = {
            name: make_defense(parse_defense(name), self.task) for name in (FEDAVG, MASKED)
        }
        self.sent = {name: d.broadcast(self.state, Rng(seed)) for name, d in self.defenses.items()}
        self.ups = {name: self.client(name) for name in self.defenses}

    def client(self, name: str) -> Tensors:
        """The client's upload, as the harness computes it."""
        return self.defenses[name].clients(self.sent[name].down, [self.batch], [{}], [{}])[0]

    def server(self, name: str) -> State:
        """The server's update from that upload."""
        cohort = Cohort((0,), torch.ones(1))
        return self.defenses[name].aggregate(self.state, self.sent[name], self.ups[name], cohort, Rng(0))

    def masks(self, name: str) -> Broadcast:
        """What the server sends under PBPFL."""
        return self.defenses[name].broadcast(self.state, Rng(0))

    def forward(self, name: str) -> Tensor:
        """The client's forward pass, and what its backward pass needs."""
        defense, x = self.defenses[name], self.batch.x[0]
        if isinstance(defense, PBPFL):
            params = defense.wire.open(self.sent[name].down).params
            return defense.wire.wide(leaves(params, last=True), channels_last(x))[0]
        return self.task.outputs(leaves(self.sent[name].down), x)

    def plain(self) -> tuple[Tensor, ...]:
        """FedAvg's gradient as one would write it in PyTorch, with channels last."""
        given, task = leaves(self.state.params, last=True), self.task
        out = functional_call(task.model, given, (channels_last(self.batch.x[0]),))
        return torch.autograd.grad(task.criterion.mean(out, self.batch.y[0]), list(given.values()))

    def parts(self) -> dict[str, dict[str, Callable[[], Any]]]:
        """What is timed, by part and method."""
        each = {FORWARD: self.forward, STEP: self.client, MASKS: self.masks, UPDATE: self.server}
        of_both: dict[str, dict[str, Callable[[], Any]]] = {
            what: {name: partial(run, name) for name in self.defenses} for what, run in each.items()
        }
        return of_both | {PLAIN: {FEDAVG: self.plain, MASKED: partial(self.client, MASKED)}}

    def wire(self) -> dict[str, dict[str, float]]:
        """Bytes that cross, by direction and method."""
        return {
            DOWN: {name: float(nbytes(sent.down)) for name, sent in self.sent.items()},
            UP: {name: float(d.sent_bytes(self.ups[name])) for name, d in self.defenses.items()},
        }


def leaves(params: Tensors, last: bool = False) -> Tensors:
    """Copies of the parameters that require gradients, with channels last if `last` is set."""
    own = {name: p.detach().clone() for name, p in params.items()}
    return {name: (channels_last(p) if last else p).requires_grad_() for name, p in own.items()}


def in_turn(
    parts: Mapping[str, Mapping[str, Callable[[], Any]]], repetitions: int, report: Callable[[float], None]
) -> dict[str, dict[str, float]]:
    """Median CPU milliseconds of every part. All parts run once before, and then take turns in every repetition."""
    spent: dict[tuple[str, str], list[float]] = {(what, name): [] for what, group in parts.items() for name in group}
    for turn in range(repetitions + 1):
        for what, name in spent:
            began = time.process_time()
            parts[what][name]()
            spent[what, name].append(time.process_time() - began)
        report((turn + 1) / (repetitions + 1))
    return {what: {name: 1e3 * median(spent[what, name][1:]) for name in group} for what, group in parts.items()}


TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_TITLE),
    rows=rows,
    measured=MEASURED,
    published=PUBLISHED,
    cpu_only="it counts CPU time",
)
