"""BAFFLE and who has read its paper: reconstruction from K loss differences, one client's and a cohort's sum.

No table of the paper. DLG matches the K differences along known directions, at first to first order; the labels are
given. One sample a client, a network at its initial parameters, the server as the party. `cohort` is the number of
clients whose differences are summed by pairwise masks (64 bits); 1: one client's, in clear. What decides is K against
the number of unknown pixels, 64 a digit and 784 a MNIST image, whatever the number of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.baffle.common import Progress
from fedarena.reproduce.place import Where
from fedarena.runs.trial import attack, prepare

SETTING = "reconstruction by DLG through the protocol, from K loss differences of one sample a client"
MEASURED = ("recovered", "ssim", "psnr", "label_accuracy", "match")
VICTIMS = {"digits": 10, "mnist": 5}
PRIORS = {"digits": {"outside": "1"}, "mnist": {"tv": "1", "decades": "3", "outside": "10"}}
"""What is known of images beside the K numbers, which do not determine 784 pixels by themselves."""
POPULATION = "samples of its own"
OWN_SAMPLES = {"prior": "population", "unlikely": "0.01", "decades": "4", "init": "normal"}
"""What an attacker knows that has digits of its own."""


@dataclass(frozen=True)
class Cell:
    """One row: the data, K, the clients' number format, the size of the cohort, and how the attacker reads, and what it
    has beside the view."""

    data: str
    k: int
    precision: str = "float64"
    cohort: int = 1
    form: str = "adaptive"
    prior: str = ""

    @property
    def name(self) -> str:
        """What `--only` picks it by."""
        what = "" if self.form == "adaptive" else ", paper form"
        what += f", {self.prior}" if self.prior else ""
        return f"{self.data}, K = {self.k}, {self.precision}, cohort {self.cohort}{what}"


CELLS = [
    *(Cell("digits", k, precision) for k in (50, 100, 200, 500) for precision in ("float64", "float32")),
    *(Cell("digits", k, form="paper") for k in (200, 500)),
    *(Cell("digits", k, cohort=n) for k in (200, 500, 1000) for n in (2, 5, 10)),
    *(Cell("mnist", k) for k in (50, 100, 200, 500, 1000)),
    Cell("mnist", 1000, "float32"),
    *(Cell("mnist", k, prior=POPULATION) for k in (50, 100, 200, 500, 1000)),
]
PIECES = tuple(cell.name for cell in CELLS)


def group(cell: Cell, seed: int, where: Where) -> GroupSpec:
    """The run behind a cell: as many rounds as victims, with a learning rate that leaves W where it starts."""
    victims = VICTIMS[cell.data]
    schedule = Schedule(rounds=victims + 1, batch_size=1, lr=1e-6)
    model = registry.find("model", "mlp").parse({"widths": "32"})
    problem = ProblemSpec(cell.data, "mlp", "iid", max(2, cell.cohort), model, schedule=schedule)
    name = "baffle" if cell.cohort == 1 else "baffle+pairwise-masks"
    bound = {} if cell.cohort == 1 else {"bound": "1"}
    defense = compose.parse_defense(name, {"directions": str(cell.k), "precision": cell.precision, **bound})
    spec = compose.parse_attack(
        "dlg",
        {
            **{"victims": str(victims), "window": str(victims + 1), "labels": "given", "max_batch": "10"},
            **(OWN_SAMPLES if cell.prior else PRIORS[cell.data]),
        },
    )
    threat = Threat("server", cell.form)  # type: ignore[arg-type]
    return GroupSpec(problem, defense, spec, (threat,), seed, where.device, where.data_dir)


def rows(piece: str, where: Where, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """One cell."""
    (cell,) = (cell for cell in CELLS if cell.name == piece)
    (prepared,) = prepare(group(cell, seed, where), lambda share, text: progress(share / 10, text))
    record, _ = attack(prepared, lambda share, text: progress(0.1 + 0.9 * share, f"{cell.name}: {text}"))
    row: dict[str, Any] = {
        "data": cell.data,
        "K": cell.k,
        "precision": cell.precision,
        "cohort": cell.cohort,
        "form": cell.form,
        "prior": cell.prior,
    }
    if record["status"] != "ok":
        return [row | dict.fromkeys(MEASURED) | {"note": f"{record['status']}: {record['reason']}"}]
    return [row | {name: record["metrics"][name] for name in MEASURED}]


__all__ = ["MEASURED", "PIECES", "SETTING", "rows"]
