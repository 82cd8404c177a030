"""One round of FedAvg, MLP 784-200-200-10, ten clients: FedArena against the simulators of other libraries.

Each peer is driven through its own client or simulator class, in this process, on one thread, with the same model, data
and learning rate, as far as possible without logging and evaluation. Peers that are not installed are named and left
out; the bar is held against the fastest that ran. Flower is not among them: its simulation runs in Ray's processes,
whose CPU time this process cannot count.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from side_by_side import Row, alternate, faster, main, note
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from work import BATCH, LR, STEPS, Federation, check, fedarena_round, federation, plain_round

BAR = 2.5
CLIENTS = 10

Round = Callable[[], object]


def pfl(f: Federation) -> Round:
    """Apple's pfl-research: `SimulatedBackend` and `FederatedAveraging`, one central iteration without evaluation."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import MinimizeReuseUserSampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = f.model()

        def loss(self, x: torch.Tensor, y: torch.Tensor, eval: bool = False) -> torch.Tensor:
            return F.cross_entropy(self.net(x), y.long())

        def metrics(self, x: torch.Tensor, y: torch.Tensor, eval: bool = False) -> dict[str, Any]:
            return {}

    raw = [(x.numpy(), y.numpy()) for x, y in zip(f.x, f.y, strict=True)]
    data = FederatedDataset(lambda user: Dataset(raw[user]), MinimizeReuseUserSampler(list(range(f.clients))))
    model = Model()
    wrapped = PyTorchModel(model, torch.optim.SGD, torch.optim.SGD(model.parameters(), 1.0))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[])

    def run() -> object:
        params = NNAlgorithmParams(
            central_num_iterations=1, evaluation_frequency=2, train_cohort_size=f.clients, val_cohort_size=None
        )
        local = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=LR, local_batch_size=BATCH)
        return FederatedAveraging().run(params, backend, wrapped, local, None, send_metrics_to_platform=False)

    return run


def byzfl(f: Federation) -> Round:
    """EPFL's ByzFL: `Client.compute_model_update` and the aggregator `Average`."""
    _tolerate_missing_operators()
    import byzfl as library
    from byzfl.fed_framework import models

    models.fedarena_benchmark = f.model
    settings = {
        "model_name": "fedarena_benchmark",
        "device": "cpu",
        "optimizer_name": "SGD",
        "optimizer_params": {},
        "learning_rate": LR,
        "loss_name": "CrossEntropyLoss",
        "weight_decay": 0.0,
        "momentum": 0.0,
        "milestones": [10**6],
        "learning_rate_decay": 1.0,
        "LabelFlipping": False,
        "nb_labels": 10,
        "store_per_client_metrics": False,
    }
    clients = [
        library.Client({**settings, "training_dataloader": DataLoader(TensorDataset(x, y), batch_size=BATCH)})
        for x, y in zip(f.x, f.y, strict=True)
    ]
    average = library.Average()

    def run() -> object:
        for client in clients:
            client.set_model_state(f.start)
            client.compute_model_update(STEPS)
        return average(torch.stack([client.get_flat_parameters() for client in clients]))

    return run


def blazefl(f: Federation) -> Round:
    """BlazeFL: `FedAvgBaseClientTrainer`, its single-threaded trainer (its pools use processes and threads)."""
    import blazefl.contrib as contrib
    import blazefl.contrib.fedavg as implementation
    from blazefl.core.utils import serialize_model

    implementation.tqdm = lambda iterable, **_: iterable  # no progress bar

    class Data:
        def get_dataset(self, type_: Any, cid: int) -> TensorDataset:
            return TensorDataset(f.x[cid], f.y[cid])

        def set_dataset(self, type_: Any, cid: int, dataset: Any) -> None:
            raise NotImplementedError

        def get_dataloader(
            self, type_: Any, cid: int, batch_size: int | None = None, generator: torch.Generator | None = None
        ) -> DataLoader[tuple[torch.Tensor, ...]]:
            return DataLoader(self.get_dataset(type_, cid), batch_size=batch_size)

    class Selector:
        def select_model(self, name: str) -> nn.Module:
            return f.model()

    trainer = contrib.FedAvgBaseClientTrainer(
        model_selector=Selector(),
        model_name="mlp",
        dataset=Data(),
        device="cpu",
        num_clients=f.clients,
        epochs=1,
        lr=LR,
        batch_size=BATCH,
        seed=0,
    )
    package = contrib.FedAvgDownlinkPackage(serialize_model(f.model()))

    def run() -> object:
        trainer.local_process(package, list(range(f.clients)))
        return trainer.uplink_package()

    return run


PEERS: dict[str, Callable[[Federation], Round]] = {"pfl": pfl, "byzfl": byzfl, "blazefl": blazefl}


def measure(repetitions: int) -> list[Row]:
    """One row a peer; the bar is on the fastest."""
    logging.disable(logging.WARNING)
    f = federation("mlp", CLIENTS)
    ours = fedarena_round(f)
    check(f, ours, "fedarena")
    candidates: dict[str, Round] = {"fedarena": ours, "plain loop": plain_round(f)}
    for name, make in PEERS.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            note(f"{name}: not installed, left out")
            continue
        candidates[f"{name} {version}"] = make(f)
    spent = alternate(candidates, repetitions)
    work = f"mlp, {CLIENTS} clients"
    peers = [name for name in candidates if name not in ("fedarena", "plain loop")]
    rows = [faster(work, "fedarena", name, spent) for name in ("plain loop", *peers)]
    if not peers:
        note("no peer is installed: nothing was compared with the bar")
        return rows
    fastest = min(peers, key=lambda name: sorted(spent[name])[repetitions // 2])
    return [*rows, faster(f"{work}, fastest peer", "fedarena", fastest, spent, at_least=BAR)]


def _tolerate_missing_operators() -> None:
    """Let ByzFL import torchvision's Python part where its compiled part does not fit a CPU build of torch."""
    register = torch.library.register_fake

    def tolerant(op: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(op, str) and op.startswith("torchvision::"):
            return lambda function: function
        return register(op, *args, **kwargs)

    torch.library.register_fake = tolerant


if __name__ == "__main__":
    main(__doc__, measure)
