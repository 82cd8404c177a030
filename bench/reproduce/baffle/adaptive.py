"""BAFFLE against attackers who have read its paper: reconstruction from K loss differences of a client or cohort.

No table of the paper. DLG matches the K differences along known directions, at first to first order; the labels are
given. One sample a client, a network at its initial parameters, the server as the party. `cohort` is the number of
clients whose differences are summed by pairwise masks (64 bits); 1: one client's, in clear. What decides is K against
the number of unknown pixels, 64 a digit and 784 a MNIST image, whatever the number of parameters."""

from __future__ import annotations

from dataclasses import dataclass

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, between
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import attack, prepare

SETTING = "reconstruction by DLG through the protocol, from K loss differences of one sample a client"
MEASURED = ("recovered", "ssim", "psnr", "label_accuracy", "match")
VICTIMS = {"digits": 10, "mnist": 5}
PRIORS = {
    "digits": {"prior": "none", "outside": "1"},
    "mnist": {"prior": "none", "tv": "1", "decades": "3", "outside": "10"},
}
"""What the attacker knows of images in addition to the K numbers, which do not determine 784 pixels by themselves."""
POPULATION = "samples of its own"
OWN_SAMPLES = {"prior": "population", "unlikely": "0.01", "decades": "4", "init": "normal"}
"""The prior of an attacker that has digits of its own."""


@dataclass(frozen=True)
class Reconstruction:
    """One row of the table.

    Attributes:
        k: the number of loss differences, K.
        precision: the number format of the clients.
        cohort: how many clients' differences are summed.
        form: how the attacker reads the differences.
        prior: what the attacker has beside its view.
    """

    data: str
    k: int
    precision: str = "float64"
    cohort: int = 1
    form: str = "adaptive"
    prior: str = ""

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        what = "" if self.form == "adaptive" else ", paper form"
        what += f", {self.prior}" if self.prior else ""
        return f"{self.data}, K = {self.k}, {self.precision}, cohort {self.cohort}{what}"


RECONSTRUCTIONS = [
    *(
        Reconstruction(data="digits", k=k, precision=precision)
        for k in (50, 100, 200, 500)
        for precision in ("float64", "float32")
    ),
    *(Reconstruction(data="digits", k=k, form="paper") for k in (200, 500)),
    *(Reconstruction(data="digits", k=k, cohort=n) for k in (200, 500, 1000) for n in (2, 5, 10)),
    *(Reconstruction(data="mnist", k=k) for k in (50, 100, 200, 500, 1000)),
    Reconstruction(data="mnist", k=1000, precision="float32"),
    *(Reconstruction(data="mnist", k=k, prior=POPULATION) for k in (50, 100, 200, 500, 1000)),
]


def group(case: Reconstruction, machine: Machine, seed: int) -> GroupSpec:
    """The run behind a case: as many rounds as victims, with a learning rate that leaves W where it starts."""
    victims = VICTIMS[case.data]
    schedule = Schedule(rounds=victims + 1, batch_size=1, lr=1e-6)
    model = registry.find("model", "mlp").parse({"widths": "32"})
    problem = ProblemSpec(
        dataset=case.data,
        model="mlp",
        partition="iid",
        clients=max(2, case.cohort),
        model_options=model,
        schedule=schedule,
    )
    name = "baffle" if case.cohort == 1 else "baffle+pairwise-masks"
    bound = {} if case.cohort == 1 else {"bound": "1"}
    defense = compose.parse_defense(name, {"directions": str(case.k), "precision": case.precision, **bound})
    spec = compose.parse_attack(
        "dlg",
        {
            **{"victims": str(victims), "window": str(victims + 1), "labels": "given", "max_batch": "10"},
            "restarts": "8",
            **(OWN_SAMPLES if case.prior else PRIORS[case.data]),
        },
    )
    threat = Threat("server", case.form)  # type: ignore[arg-type]
    return GroupSpec(
        problem=problem,
        defense=defense,
        attack=spec,
        threats=(threat,),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )


def measure(case: Reconstruction, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row."""
    (prepared,) = prepare(group(case, machine, seed), between(progress, 0.0, 0.1))
    record, _ = attack(prepared, between(progress, 0.1, 1.0))
    row: Row = {
        "data": case.data,
        "K": case.k,
        "precision": case.precision,
        "cohort": case.cohort,
        "form": case.form,
        "prior": case.prior,
    }
    if record["status"] != "ok":
        return [without_result(row, MEASURED, record)]
    return [row | {name: record["metrics"][name] for name in MEASURED}]


BY_NAME = {case.name: case for case in RECONSTRUCTIONS}
TABLE = Table(setting=SETTING, pieces=tuple(BY_NAME), rows=measured_by_name(BY_NAME, measure), measured=MEASURED)
