"""A problem: federated data, a model and a schedule, resolved and ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.core.errors import UserError, lacks_memory
from fedarena.core.global_generators import seeded_generators
from fedarena.core.options import to_text
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, find_device, single_precision, to
from fedarena.core.threat import Threat
from fedarena.datasets.dataset import Dataset, Provenance, load_from
from fedarena.models.architecture import Architecture, UnusableLayer, made_by, with_layer_names
from fedarena.models.module_check import SAMPLES, require_fit, require_initial
from fedarena.problem.augment import augmented, check_augment
from fedarena.problem.data_split import Index, choose_corrupted, divide, hold
from fedarena.problem.loss import Criterion
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Auxiliary, Batch, Task


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
        warnings: texts that must stand beside every number of a run with this model and data set.
        attributes: further facts about samples, by name: (of the training samples, of the held-out samples), int8.
            1: the sample has the attribute, 0: it does not, −1: unknown.
        dataset: the data set's registry name, for messages.
        blind_auc: the chance of a membership attack (`fedarena.datasets.dataset.Dataset`).
        words: of texts the word that each place of a one-hot code stands for, padding first; () for other samples.
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
    blind_auc: float = 0.5
    words: tuple[str, ...] = ()

    def inputs(self, index: Tensor) -> Tensor:
        """Training inputs in [0, 1], in the precision of the initial parameters."""
        return self.x[index].to(next(iter(self.init.values())).dtype) / self.scale

    def data_of(self, threat: Threat) -> Batch | None:
        """All samples of the party [1, N_c, ...]: a client's, or those that the server holds for the protocol."""
        if not threat.visibility.own:
            return self.auxiliary if threat.visibility.state else None
        shard = self.shards[threat.client]
        return Batch(self.inputs(shard)[None], self.y[shard][None])

    def batch(self, client: int, rng: Rng, poisson: bool = False) -> Batch:
        """The local work of one client, see `batches`."""
        return self.batches([(client, rng)], poisson)[0]

    def batches(self, draws: Sequence[tuple[int, Rng]], poisson: bool = False) -> list[Batch]:
        """The local work of clients in one round: FedSGD's batches, or FedAvg's for all local epochs.

        FedSGD: b samples of its shard without replacement, or each sample with probability b/N_c when `poisson`.
        FedAvg: ⌊N_c/b⌋·b samples for the round, or of no more than `local_samples`, in a fresh order every local
        epoch, cut into full batches.

        Args:
            draws: the clients, each with its randomness. Its batch depends on these alone.

        Returns:
            Samples [steps, b, ...] of each client, all of them views of one tensor.
        """
        orders = [self._drawn(client, rng.torch(), poisson) for client, rng in draws]
        if not orders:
            return []
        index, sizes = torch.cat(orders), [len(order) for order in orders]
        parts = zip(self._changed(draws, self.inputs(index).split(sizes)), self.y[index].split(sizes), strict=True)
        return [Batch(x[None], y[None]) if poisson else Batch(x, y) for x, y in parts]

    def _changed(self, draws: Sequence[tuple[int, Rng]], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """The clients' inputs with the random changes of the option `augment`."""
        how = self.task.schedule.augment
        if not how:
            return inputs
        return [augmented(x, how, rng.child("augment")) for (_, rng), x in zip(draws, inputs, strict=True)]

    def _drawn(self, client: int, generator: torch.Generator, poisson: bool) -> Tensor:
        """The samples that a client works on in a round: [steps, b], or [b'] when `poisson`; see `batches`."""
        schedule, shard = self.task.schedule, self.shards[client]
        b, n = schedule.batch_size, len(shard)
        if poisson:
            chosen = torch.rand(n, generator=generator).mul_(n).lt_(b).nonzero().flatten()
            return shard[chosen.to(shard.device)]
        order = torch.randperm(n, generator=generator)[: schedule.taken(n)]
        if schedule.local_epochs > 1:
            again = [order[torch.randperm(len(order), generator=generator)] for _ in range(schedule.local_epochs - 1)]
            order = torch.cat([order, *again])
        return shard[order.to(shard.device)].reshape(-1, b)

    def evaluate(self, params: Tensors) -> tuple[float, float]:
        """(accuracy, or R² of numbers; mean loss) of the plain model on the held-out data."""
        quality, loss, _ = self.evaluate_by_class(params)
        return quality, loss

    @torch.no_grad()
    def evaluate_by_class(self, params: Tensors) -> tuple[float, float, tuple[float, ...]]:
        """As `evaluate`, and the accuracy on each class.

        That is the share of its held-out samples that the model gets right, NaN where there are none; () for numbers.
        """
        out, criterion, y = self.predictions(params), self.task.criterion, self.y_test
        quality, loss = criterion.quality(out, y), float(criterion.each(out, y).double().mean())
        if not self.task.n_classes:
            return quality, loss, ()
        right = y[criterion.classes(out) == y].bincount(minlength=self.task.n_classes)
        by_class = right.double() / y.bincount(minlength=self.task.n_classes)
        return quality, loss, tuple(by_class.tolist())

    def top(self, params: Tensors, k: int) -> float:
        """The share of the held-out samples whose class is among the k largest outputs."""
        best = self.predictions(params).topk(k, dim=1).indices
        return float((best == self.y_test[:, None]).any(1).double().mean())

    @property
    def chance(self) -> float:
        """The quality of a constant prediction on the held-out data: the largest class's share; 0 for R² of numbers."""
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

    The partition, the choice of corrupted clients and the initial parameters depend on the seed only, so that every
    defense starts from the same ones. The server's samples are taken out of the clients' shards.

    Args:
        auxiliary: the samples that the server must hold (`fedarena.federation.compose.auxiliary`).

    Raises:
        UserError: data that is missing or damaged, a batch larger than a shard, a model that does not fit.
    """
    cards = spec.cards()
    data = load_from(cards["dataset"].load(), data_dir)
    rng, place = Rng(seed), find_device(device)
    held, taken = hold(data, auxiliary, rng.child("auxiliary"), data_dir)
    corrupted = choose_corrupted(spec, rng.child("corrupted"))
    shards = _shards(data, spec, corrupted, taken, rng)
    check_augment(spec.schedule.augment, tuple(data.x_train.shape[1:]))
    architecture: Architecture = cards["model"].load()(spec.model_options)
    task, init = _model(architecture, data, spec, tuple(len(s) for s in shards), place, rng.child("init"))

    def on_device(array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(place)

    return Problem(
        task=task,
        x=on_device(data.x_train),
        y=on_device(data.y_train),
        x_test=on_device(data.x_test),
        y_test=on_device(data.y_test),
        scale=data.scale,
        shards=tuple(on_device(s) for s in shards),
        init=init,
        provenance=data.provenance,
        device=place,
        corrupted=corrupted,
        auxiliary=None if held is None else Batch(held.x.to(place), held.y.to(place)),
        warnings=architecture.warnings + data.warnings,
        attributes={name: (on_device(train), on_device(test)) for name, (train, test) in data.attributes.items()},
        dataset=spec.dataset,
        blind_auc=data.blind_auc,
        words=data.words,
    )


def _shards(data: Dataset, spec: ProblemSpec, corrupted: tuple[int, ...], taken: Index, rng: Rng) -> list[Index]:
    """Each client's training samples without those that the server has `taken`. Raises UserError."""
    shards = [s[~np.isin(s, taken)] for s in divide(data, spec, corrupted, rng)]
    if not all(len(s) for s in shards):
        raise UserError("the server's auxiliary samples leave a client without data: use fewer clients or samples")
    spec.schedule.check(tuple(len(s) for s in shards))
    return shards


def _model(
    architecture: Architecture,
    data: Dataset,
    spec: ProblemSpec,
    sizes: tuple[int, ...],
    device: torch.device,
    rng: Rng,
) -> tuple[Task, Tensors]:
    """The public facts with the model, and its initial parameters. Raises UserError for a model that does not fit."""
    shape = tuple(data.x_train.shape[1:])
    with _explained_lack_of_memory(spec):
        outputs = Criterion(spec.schedule.loss, data.n_classes).outputs
        try:
            with seeded_generators(rng.child("module").integer(63)):
                made = made_by(architecture, architecture.module(shape, outputs))
            require_fit(made, shape, outputs, min(SAMPLES, spec.schedule.batch_size))
            module = with_layer_names(made)
            with single_precision(), seeded_generators(rng.child("init").integer(63)):
                values = architecture.init(module, rng.torch())
            require_initial(module, values)
            init = to(values, device)
        except UnusableLayer as error:
            raise UserError(f"option 'model' is {spec.model}, whose {error}") from None
        module = module.to(device)
    task = Task(
        model=module,
        input_shape=shape,
        n_classes=data.n_classes,
        sizes=sizes,
        schedule=spec.schedule,
        assumed_corrupted=spec.assumed_corrupted_or_default,
    )
    return task, init


@contextmanager
def _explained_lack_of_memory(spec: ProblemSpec) -> Iterator[None]:
    """Replace PyTorch's error by one that names the model and its options. Raises UserError."""
    try:
        yield
    except (MemoryError, RuntimeError, TypeError) as error:
        if not lacks_memory(error):
            raise
        usual, chosen = asdict(type(spec.model_options)()), asdict(spec.model_options)
        given = ", ".join(f"{name}={to_text(value)}" for name, value in chosen.items() if value != usual[name])
        raise UserError(
            f"option 'model' is {spec.model}{f' with {given}' if given else ''}, which does not fit in memory: "
            "use a smaller model"
        ) from None
