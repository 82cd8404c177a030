"""The federations of BAFFLE's paper (Feng et al. 2023, Section 4), for its tables.

Epoch level: each client takes a local epoch of Adam steps (β = 0.9, 0.99, rate 0.01, batch 32) on its own estimates and
uploads W − W_local. As in the released code, clients perturb on their own and keep Adam's memory between rounds, every
estimate is shortened to a largest entry of 0.3, and the average that is deployed warms its decay up. MNIST is enlarged
to 32×32, CIFAR-10 normalised. The paper's validation images (500 a class) stay with the clients here. The released
code's weight decay of 5e-4 has rows of its own; its flips and shifts and its first epoch at rate 0.02 on CIFAR-10 are
left out. Of CIFAR-100 the paper gives the top-5 accuracy, which is not measured here.

Fewer images make fewer steps in an epoch: of CIFAR-10 there are folders with a part of it only. Rows say on how many
images they were trained, and `same_steps` stretches the rounds until the clients have taken the paper's steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from fedarena import datasets
from fedarena.core import registry
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Cause, Published
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import prepare

INPUTS = {"mnist": {"size": "32"}, "cifar10": {"mean": "0.4734", "std": "0.2009"}}
"""Options of the model: MNIST as it is, CIFAR-10 normalised by the means of the released code's three channels. WRN has
no `std`, since its first normalisation would remove it."""
ROUNDS = {"mnist": 20, "cifar10": 40}
IMAGES = {"mnist": 55_000, "cifar10": 45_000}
"""The number of images that the paper's clients have together."""
MEASURED = ("accuracy", "best", "cpu_seconds")
"""The columns that `measure` adds to a row's setting."""
CODE = (("perturbations", "client"), ("clip", "0.3"), ("optimizer_state", "kept"))
"""Options as in the released code."""
CODES_DECAY = 5e-4
"""The weight decay of the released code."""
FORM = (
    "as in the released code, whose form the paper's tables have: each client perturbs on its own, estimates are "
    "shortened to a largest entry of 0.3, Adam's memory is kept between rounds"
)
"""The meaning of these options, in words."""


@dataclass(frozen=True)
class Experiment:
    """One number of a table.

    Attributes:
        data: mnist or cifar10. model: lenet-baffle or wrn-10-2.
        title: what the row is called. paper: the paper's accuracy, None where it gives none.
        k: K; None: backpropagation.
        settings: further options of baffle. options: further options of the model.
        clients, partition: how the data are shared out.
        rounds: fewer than the paper's, for cuts.
        weight_decay: λ of the clients' steps.
        same_steps: as many rounds as give the paper's number of steps on the images that there are.
        simulated: estimates are drawn from their distribution; otherwise real forward passes compute them.
        causes: why ours may differ from the paper's.
    """

    data: str
    model: str
    title: str
    paper: float | None
    k: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    clients: int = 10
    partition: str = "iid"
    rounds: int | None = None
    weight_decay: float = 0.0
    same_steps: bool = False
    simulated: bool = True
    causes: tuple[Cause, ...] = ()

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.data}, {self.model}, {self.title}"

    def rounds_on(self, images: int) -> int:
        """The number of rounds of one local epoch, if the clients together hold this number of images."""
        rounds = self.rounds or ROUNDS[self.data]
        return round(rounds * IMAGES[self.data] / images) if self.same_steps else rounds


def group(experiment: Experiment, machine: Machine, seed: int, images: int) -> GroupSpec:
    """The training run behind an experiment, on this number of training images."""
    schedule = Schedule(
        rounds=experiment.rounds_on(images),
        batch_size=32,
        local_epochs=1,
        lr=0.01,
        client_optimizer="adam",
        adam_beta2=0.99,
        weight_decay=experiment.weight_decay,
        eval_every=1,
    )
    card = registry.find("model", experiment.model)
    known = {f.name for f in fields(card.options)}
    inputs = {name: value for name, value in INPUTS.get(experiment.data, {}).items() if name in known}
    # Local batches are full: about one partition in ten leaves a client without one, and is drawn again.
    share = {"alpha": "0.3", "min_size": "32"} if experiment.partition == "dirichlet" else {}
    problem = ProblemSpec(
        dataset=experiment.data,
        model=experiment.model,
        partition=experiment.partition,
        clients=experiment.clients,
        model_options=card.parse(inputs | dict(experiment.options)),
        partition_options=registry.find("partition", experiment.partition).parse(share),
        schedule=schedule,
    )
    return GroupSpec(
        problem=problem,
        defense=_defense(experiment),
        attack=None,
        threats=(),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )


def _defense(experiment: Experiment) -> MethodSpec:
    if experiment.k is None:
        return compose.parse_defense("fedavg")
    options = {"directions": str(experiment.k), "law": str(experiment.simulated).lower()}
    return compose.parse_defense("baffle", dict(CODE) | options | dict(experiment.settings))


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of an experiment for one seed, with the paper's accuracy beside ours."""
    images = len(datasets.load(experiment.data, machine.data_dir).x_train)
    record = prepare(group(experiment, machine, seed, images), progress)[0].record
    row: Row = {
        "data": experiment.data,
        "model": experiment.model,
        "row": experiment.title,
        "K": experiment.k,
        "rounds": experiment.rounds_on(images),
        "paper": experiment.paper,
    }
    if record["status"] != "ok":
        return [without_result(row, (*MEASURED, "simulated"), record)]
    curve = record["utility"]["clean_curve"]
    row |= {
        "accuracy": curve[-1][1],
        "best": max(accuracy for _, accuracy, _ in curve),
        "cpu_seconds": record["cost"]["seconds"],
        "simulated": "in law" if experiment.simulated and experiment.k is not None else "",
    }
    if images != IMAGES.get(experiment.data):
        row["note"] = trained_on(experiment.data, images)
    return [row]


def trained_on(data: str, images: int) -> str:
    """The note of a row whose clients do not hold as many images as the paper's."""
    paper = f"; the paper's {IMAGES[data]:,}" if data in IMAGES else ""
    return f"{images:,} training images{paper}"


def accuracy_table(setting: str, experiments: Sequence[Experiment]) -> Table:
    """The table of these experiments, each beside the paper's accuracy if there is one."""
    by_name = {experiment.name: experiment for experiment in experiments}
    return Table(
        setting=setting,
        pieces=tuple(by_name),
        rows=measured_by_name(by_name, measure),
        measured=MEASURED,
        published=tuple(
            Published(piece=name, paper=experiment.paper, column="accuracy", decimals=4, causes=experiment.causes)
            for name, experiment in by_name.items()
            if experiment.paper is not None
        ),
    )


def longer(experiment: Experiment, title: str) -> Experiment:
    """An experiment with the paper's number of steps, whatever the number of images."""
    return replace(experiment, title=f"the paper's number of steps, {title}", same_steps=True, causes=())


def decayed(experiment: Experiment) -> Experiment:
    """An experiment with the weight decay of the released code."""
    return replace(experiment, title=f"{experiment.title}, weight_decay={CODES_DECAY}", weight_decay=CODES_DECAY)


def cut(experiment: Experiment, rounds: int) -> tuple[Experiment, Experiment]:
    """An experiment shortened to few rounds, once simulated and once with real forward passes."""
    short = replace(experiment, paper=None, rounds=rounds, title=f"K = {experiment.k}, {rounds} rounds, in law")
    return short, replace(short, simulated=False, title=f"K = {experiment.k}, {rounds} rounds, real forward passes")


def real(experiment: Experiment) -> Experiment:
    """An experiment with real forward passes in all of its rounds, which takes hours on a CPU."""
    return replace(experiment, paper=None, simulated=False, title=f"K = {experiment.k}, real forward passes")
