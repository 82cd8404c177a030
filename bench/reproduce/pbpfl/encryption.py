"""PBPFL beside homomorphic encryption: what one round costs in bytes and CPU seconds.

The paper (Section 1) rules homomorphic encryption out for its "high computational and communication overhead" and
prints no figure of it. Here each method plays one round of real uploads, from the same parameters and on the same
batches:

    fedavg                  nothing is hidden
    pbpfl                   the model from clients, as the paper claims (`bench reproduce pbpfl/unmask` refutes it)
    fedavg+pairwise-masks   uploads from the server
    pbpfl+pairwise-masks    both
    fedavg+ckks             uploads and the model from the server, which adds ciphertexts (`homomorphic`)

So encryption is a rival in cost and not in purpose: its clients know the model, and PBPFL's server does.

`seconds` is of the whole round on one thread: k clients' training and protection, and the server, medians over
repetitions in which the methods take turns. `encrypt_s`, `add_s` and `decrypt_s` are parts of it: one client's
encryption, the server's sum, one client's decryption. Bytes are a client's mean; `bytes_down` includes the broadcast
model, except with ckks, whose clients receive the encrypted sum and step by themselves. Keys of ckks, sent once, are
left out. `error` is the relative L2 distance of the server's step from FedAvg's. The learning rate is so large that the
step exceeds the former parameters, whose rounding would count as an error otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from fedarena.contracts.defense import Defense
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, nbytes
from fedarena.federation.adversary import NoAdversary
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.federation.one_round import Federation, RoundResult, play
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import common
from fedarena.reproduce.pbpfl.common import FEDAVG, MASKED
from fedarena.reproduce.pbpfl.homomorphic import EncryptedSum
from fedarena.reproduce.pbpfl.precision import relative
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

ENCRYPTED = f"{FEDAVG}+ckks"
HIDES = {
    FEDAVG: "nothing",
    MASKED: "the model from clients",
    f"{FEDAVG}+pairwise-masks": "uploads from the server",
    f"{MASKED}+pairwise-masks": "both",
    ENCRYPTED: "uploads and the model from the server",
}
"""Method → what it is made to hide, and from whom."""
OPTIONS = {f"{MASKED}+pairwise-masks": {"pairwise-masks.bits": "64", "pairwise-masks.bound": "1e6"}}
"""PBPFL's uploads are large, so that their sum needs room."""
RATE = 1e3

SETTING = (
    "one round at the initial parameters, 10 clients: CPU seconds of clients and server together on one thread, "
    "medians; bytes of a client up and down; relative distance of the server's step from FedAvg's"
)
MEASURED = ("seconds", "encrypt_s", "add_s", "decrypt_s", "bytes_up", "bytes_down", "error")


@dataclass(frozen=True)
class Network:
    """A network on the samples of some data set.

    Attributes:
        title: the name by which `--only` selects it. data, model, options: from the registry.
        loss: mse or regression. batch: samples of a client. k: clients. repetitions: turns of each method.
    """

    title: str
    data: str
    model: str
    options: tuple[tuple[str, str], ...]
    loss: str = "mse"
    batch: int = 32
    k: int = 10
    repetitions: int = 1


NETWORKS = (
    Network(
        title="MLP-3 (code), bank-additional",
        data="bank-additional",
        model="mlp",
        options=(("widths", "50,50,50"), ("bias", "false")),
        loss="regression",
        batch=512,
        repetitions=21,
    ),
    Network(title="small CNN, MNIST", data="mnist", model="cnn-mnist", options=(), repetitions=3),
    Network(title="ResNet-20, CIFAR-10", data="cifar10", model="resnet", options=(("depth", "20"),), repetitions=2),
    Network(title="ResNet-56, CIFAR-10", data="cifar10", model="resnet", options=(("depth", "56"),)),
)
BY_TITLE = {network.title: network for network in NETWORKS}


def measure(network: Network, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row a method."""
    problem = _problem(network, machine, seed)
    encrypted = EncryptedSum()
    defenses = {
        name: make_defense(parse_defense(FEDAVG), problem.task).secured(encrypted)
        if name == ENCRYPTED
        else make_defense(parse_defense(name, OPTIONS.get(name)), problem.task)
        for name in HIDES
    }
    seconds: dict[str, list[float]] = {name: [] for name in defenses}
    parts: list[Mapping[str, float]] = []
    results: dict[str, RoundResult] = {}
    for turn in range(network.repetitions + 1):
        for i, (name, defense) in enumerate(defenses.items()):
            progress((turn + i / len(defenses)) / (network.repetitions + 1), name)
            results[name] = _play(defense, problem, seed)
            seconds[name].append(results[name].seconds)
        parts.append(encrypted.seconds)
    plain = _step(problem, results[FEDAVG])
    of_ckks = {f"{part}_s": median(spent[part] for spent in parts[1:]) for part in ("encrypt", "add", "decrypt")}
    return [
        {
            "network": network.title,
            "parameters": sum(p.numel() for p in problem.init.values()),
            "clients": network.k,
            "method": name,
            "hides": HIDES[name],
            "seconds": median(seconds[name][1:]),
            **(of_ckks if name == ENCRYPTED else dict.fromkeys(of_ckks)),
            "bytes_up": result.bytes_up / network.k,
            "bytes_down": result.bytes_down / network.k - (nbytes(problem.init) if name == ENCRYPTED else 0),
            "error": relative(_step(problem, result), plain),
        }
        for name, result in results.items()
    ]


def _problem(network: Network, machine: Machine, seed: int) -> Problem:
    schedule = Schedule(rounds=1, batch_size=network.batch, loss=network.loss, lr=RATE)
    spec = common.spec(network.data, network.model, dict(network.options), "disjoint", network.k, schedule)
    return build(spec, seed, machine.data_dir, machine.device)


def _play(defense: Defense, problem: Problem, seed: int) -> RoundResult:
    """The first round. Batches and masks follow from the seed alone."""
    rng = Rng(seed).child("encryption")
    federation = Federation(
        defense=defense,
        problem=problem,
        rng=rng,
        adversary=NoAdversary(),
        draw=lambda t, client: None,
        peak=None,
    )
    return play(federation, defense.init(problem.init, rng.child("init"), problem.auxiliary), 0)


def _step(problem: Problem, result: RoundResult) -> Tensors:
    """The server's step, in double precision."""
    after = {name: p.double() for name, p in result.state.params.items()}
    return combine(1, {name: p.double() for name, p in problem.init.items()}, -1, after)


TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_TITLE),
    rows=measured_by_name(BY_TITLE, measure),
    measured=MEASURED,
    cpu_only="it counts CPU time",
)
