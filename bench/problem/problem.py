"""A problem: federated data, a model and a schedule, resolved and ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.device import find_device
from fedarena.core.errors import UserError
from fedarena.core.option_values import to_text
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, to
from fedarena.core.threat import Threat
from fedarena.datasets.dataset import Provenance
from fedarena.problem.batch import Auxiliary, Batch
from fedarena.problem.data_split import choose_corrupted, divide, hold
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

CORRUPTED_DATA = ("shard", "resampled")

NO_ROOM = (
    "allocate memory",  # on a CPU: "can't allocate memory", "Cannot allocate memory"
    "not enough memory",  # on a CPU of Windows
    "out of memory",  # on a GPU
    "Storage size calculation overflowed",  # more bytes than can be counted
    "Overflow when unpacking long",  # a width beyond 64 bits
)
"""By which PyTorch's errors are known that mean a tensor is too large; it has no class for them on a CPU."""


@dataclass(frozen=True)
class ProblemSpec:
    """What a problem is made from; everything here is part of a record's key.

    Attributes:
        dataset, model, partition: registry names.
        clients: number of clients, corrupted ones included.
        model_options, partition_options: options objects of the model's and the partition's card.
        schedule: the training schedule.
        corrupted: how many of the clients are corrupted when the federation is attacked.
        corrupted_data: where their data come from. `shard`: the training set is shared out among all clients.
            `resampled`: it is shared out among the honest ones only, and each corrupted client holds a shard of
            another division of the same set, so that honest data do not shrink as the corrupted grow in number.
        belief: how many corrupted clients the server expects; None: as many as there are, or where none are
            announced a fifth of all.
    """

    dataset: str
    model: str
    partition: str
    clients: int
    model_options: Any = field(default_factory=NoOptions)
    partition_options: Any = field(default_factory=NoOptions)
    schedule: Schedule = field(default_factory=Schedule)
    corrupted: int = 0
    corrupted_data: str = "shard"
    belief: int | None = None

    def __post_init__(self) -> None:
        """Raises UserError for numbers that cannot be."""
        if not 0 <= self.corrupted < self.clients:
            raise UserError(
                f"option 'corrupted' is {self.corrupted}, allowed: 0 to {self.clients - 1}, for one of "
                f"{self.clients} clients at least is honest"
            )
        if self.belief is not None and not 0 <= self.belief < self.clients:
            raise UserError(f"option 'belief' is {self.belief}, allowed: 0 to {self.clients - 1}")
        if self.corrupted_data not in CORRUPTED_DATA:
            raise UserError(f"option 'corrupted-data' is {self.corrupted_data!r}, allowed: {', '.join(CORRUPTED_DATA)}")

    @property
    def expected(self) -> int:
        """How many corrupted clients the server expects."""
        return self.belief if self.belief is not None else self.corrupted or self.clients // 5

    def cards(self) -> dict[str, Card]:
        """The cards of its parts."""
        kinds = {"dataset": self.dataset, "model": self.model, "partition": self.partition}
        return {kind: registry.find(kind, name) for kind, name in kinds.items()}  # type: ignore[arg-type]

    def options(self) -> dict[str, dict[str, Any]]:
        """All options, resolved, by group."""
        return {
            "model": asdict(self.model_options),
            "partition": asdict(self.partition_options),
            "training": asdict(self.schedule),
        }


@dataclass(frozen=True)
class Problem:
    """Data on a device, shards, initial parameters. Only the harness holds it; defenses get the task.

    Attributes:
        task: the public facts.
        x, y: training inputs as stored [N, *input_shape] and classes [N].
        x_test, y_test: held out.
        scale: stored value that means 1.0.
        shards: sample indices of each client.
        init: initial parameters.
        provenance: where the data came from.
        device: where computation runs.
        corrupted: which clients are corrupted when the federation is attacked, ascending.
        auxiliary: the samples that the server holds, [1, n, ...], if any.
        warnings: what must stand beside every number of a run with this model.
        attributes: what else is known of samples, by name: of those for training and of those held out, int8, 1 has
            it, 0 has it not, −1 unknown.
        dataset: the data set's registry name, for messages.
    """

    task: Task
    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    scale: float
    shards: tuple[Tensor, ...]
    init: Tensors
    provenance: Provenance
    device: torch.device
    corrupted: tuple[int, ...] = ()
    auxiliary: Batch | None = None
    warnings: tuple[str, ...] = ()
    attributes: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    dataset: str = ""

    def inputs(self, index: Tensor) -> Tensor:
        """Training inputs in [0, 1], in the precision of the initial parameters."""
        return self.x[index].to(next(iter(self.init.values())).dtype) / self.scale

    def data_of(self, threat: Threat) -> Batch | None:
        """All samples of the party [1, N_c, ...], when it is a client."""
        if not threat.visibility.own:
            return None
        shard = self.shards[threat.client]
        return Batch(self.inputs(shard)[None], self.y[shard][None])

    def batch(self, client: int, rng: Rng, poisson: bool = False) -> Batch:
        """The local work of one client in one round.

        FedSGD: b samples of its shard without replacement, or each sample with probability b/N_c when `poisson`.
        FedAvg: ⌊N_c/b⌋·b samples for the round, or of no more than `local_samples`, in a fresh order every local
        epoch, cut into full batches.
        """
        schedule, shard = self.task.schedule, self.shards[client]
        b, n = schedule.batch_size, len(self.shards[client])
        generator = rng.torch()
        if poisson:
            index = shard[torch.rand(n, generator=generator).mul_(n).lt_(b).nonzero().flatten().to(shard.device)]
            return Batch(self.inputs(index)[None], self.y[index][None])
        epochs = max(1, schedule.local_epochs)
        kept = schedule.taken(n)
        chosen = torch.randperm(n, generator=generator)[:kept]
        again = [chosen[torch.randperm(kept, generator=generator)] for _ in range(epochs - 1)]
        order = torch.cat([chosen, *again])
        index = shard[order.to(shard.device)].reshape(-1, b)
        return Batch(self.inputs(index), self.y[index])

    @torch.no_grad()
    def evaluate(self, params: Tensors) -> tuple[float, float]:
        """(accuracy, or R² of numbers; mean loss) of the plain model on the held-out data."""
        out = self.predictions(params)
        criterion = self.task.criterion
        return criterion.quality(out, self.y_test), float(criterion.each(out, self.y_test).double().mean())

    @property
    def chance(self) -> float:
        """What a constant prediction reaches on the held-out data: the largest class's share; R² of numbers is 0."""
        if not self.task.n_classes:
            return 0.0
        labels = self.y_test.bincount()
        return float(labels.max() / labels.sum())

    def predictions(self, params: Tensors) -> Tensor:
        """The plain model's outputs on the held-out data [N, outputs]."""
        return self.task.predictions(params, self.x_test, self.scale)


def build(
    spec: ProblemSpec,
    seed: int,
    data_dir: Path | None = None,
    device: str = "cpu",
    auxiliary: Auxiliary | None = None,
) -> Problem:
    """Load the data, split it, and initialise the model.

    The partition, who is corrupted and the initial parameters depend on the seed only, so that every defense
    starts from the same ones. A server's samples are taken out of the clients' shards.

    Args:
        auxiliary: the samples that the server must hold (`fedarena.federation.compose.auxiliary`).

    Raises:
        UserError: data that is missing or damaged, a batch larger than a shard, a model that does not fit.
    """
    cards = spec.cards()
    data = cards["dataset"].load()(data_dir)
    rng = Rng(seed)
    shape, place = tuple(data.x_train.shape[1:]), find_device(device)
    held, taken = hold(data, auxiliary, rng.child("auxiliary"), data_dir)
    corrupted = choose_corrupted(spec, rng.child("corrupted"))
    shards = [s[~np.isin(s, taken)] for s in divide(data, spec, corrupted, rng)]
    if not all(len(s) for s in shards):
        raise UserError("the server's auxiliary samples leave a client without data: use fewer clients or samples")
    sizes = tuple(len(s) for s in shards)
    spec.schedule.check(sizes)
    architecture = cards["model"].load()(spec.model_options)
    with _fitting(spec):
        module = architecture.module(shape, Criterion(spec.schedule.loss, data.n_classes).outputs).to(place)
        init = to(architecture.init(module, rng.child("init").torch()), place)
    task = Task(module, shape, data.n_classes, sizes, spec.schedule, spec.expected)
    return Problem(
        task=task,
        x=torch.from_numpy(data.x_train).to(place),
        y=torch.from_numpy(data.y_train).to(place),
        x_test=torch.from_numpy(data.x_test).to(place),
        y_test=torch.from_numpy(data.y_test).to(place),
        scale=data.scale,
        shards=tuple(torch.from_numpy(s).to(place) for s in shards),
        init=init,
        provenance=data.provenance,
        device=place,
        corrupted=corrupted,
        auxiliary=None if held is None else Batch(held.x.to(place), held.y.to(place)),
        warnings=architecture.warnings,
        attributes={
            name: (torch.from_numpy(train).to(place), torch.from_numpy(held).to(place))
            for name, (train, held) in data.attributes.items()
        },
        dataset=spec.dataset,
    )


@contextmanager
def _fitting(spec: ProblemSpec) -> Iterator[None]:
    """Tell of a model that is too large for the machine by the options that made it so. Raises UserError."""
    try:
        yield
    except (MemoryError, RuntimeError, TypeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in NO_ROOM):
            raise
        usual, said = asdict(type(spec.model_options)()), asdict(spec.model_options)
        given = ", ".join(f"{name}={to_text(value)}" for name, value in said.items() if value != usual[name])
        raise UserError(
            f"option 'model' is {spec.model}{f' with {given}' if given else ''}, which does not fit in memory: "
            "use a smaller model"
        ) from None
