"""DBCL, Appendix D: what neighbours learn of each other where there is no server.

The paper says that a neighbour's gradient attacks apply there, that sketches stop them, and leaves both for later. Here
twelve nodes on a regular graph take one sample a round. A curious neighbour, alone or with others of the victim's
neighbours, reads its messages in the paper's form and with the smoother of `fedarena.defenses.dbcl.neighbour_estimate`.

    cosine      of the estimated gradient of hidden layers with the victim's, the median over rounds
    identified  share of the victim's images that an attack finds which reads a dense layer's gradient

The pieces `trains` say what the sketches cost: accuracy of the mean model and of the worst node after 300 rounds of
batches of 16, and how far nodes are from each other. On MNIST the network, batch and rate are those of
`fedarena.reproduce.dbcl.table1`, and a round is an epoch over 600 of a node's samples.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from fedarena.core.rng import Rng
from fedarena.core.text.figures import Line, Panel, panels, save_png
from fedarena.core.threat import Threat
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.nodes import node_metrics
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.inference.common import pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

NODES = 12
DEGREES = (2, 4, 8)
MOST = 4
"""The largest coalition."""
RATIOS: Mapping[str, str] = {"no sketch": "", "s = 3d/4": "0.75", "s = d/2": "0.5", "s = d/4": "0.25"}
"""Name → the ratio of `dbcl-peers`; "": `d-sgd`."""
SETTING = (
    f"digits, {NODES} nodes on a random regular graph, mlp of 64 units; neighbours read in 30 rounds of one sample at "
    "rate 0.1; `trains`: 300 rounds of batches of 16 at rate 0.5, on MNIST 40 rounds of 60 batches of 10 at rate 0.1, "
    "mlp of 200 and 200 units"
)
TRAININGS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "digits": {"model": {"widths": "64"}, "training": {"rounds": "300", "batch_size": "16", "lr": "0.5"}},
    "mnist": {
        "model": {"widths": "200,200"},
        "training": {"rounds": "40", "batch_size": "10", "lr": "0.1", "local_epochs": "1", "local_samples": "600"},
    },
}
"""Data set → network and schedule of the pieces `trains`."""


@dataclass(frozen=True)
class Case:
    """A protocol on a graph; `members` of the victim's neighbours read, or none and the model is measured."""

    protocol: str
    options: Mapping[str, str]
    degree: int
    members: int = 0
    dataset: str = "digits"


def _case(ratio: str, degree: int, members: int = 0, mixing: str = "", dataset: str = "digits") -> Case:
    options = {"ratio": ratio} if ratio else {}
    if mixing:
        options["mixing"] = mixing
    return Case("dbcl-peers" if ratio else "d-sgd", options, degree, members, dataset)


PIECES: Mapping[str, Case] = {
    **{
        f"degree {degree}, {name}, {k} of the neighbours": _case(ratio, degree, k)
        for degree in DEGREES
        for name, ratio in RATIOS.items()
        for k in range(1, min(degree, MOST) + 1)
    },
    **{
        f"trains: degree {degree}, {name}": _case(ratio, degree) for degree in DEGREES for name, ratio in RATIOS.items()
    },
    "trains: degree 4, s = d/2, unbiased": _case("0.5", 4, mixing="unbiased"),
    **{
        f"trains: mnist, degree 4, {name}": _case(RATIOS[name], 4, dataset="mnist")
        for name in ("no sketch", "s = d/2", "s = d/4")
    },
}
MEASURED = (
    *("cosine, paper", "cosine", "identified, paper", "identified", "low", "high"),
    *("accuracy", "worst node", "consensus", "cpu_seconds"),
)


def measure(case: Case, machine: Machine, seed: int, progress: Progress, total: int = 0) -> list[Row]:
    """One piece. `total` replaces the number of rounds."""
    began = time.process_time()
    row: Row = {
        "dataset": case.dataset,
        "degree": case.degree,
        "members": case.members,
        "ratio": case.options.get("ratio", ""),
    }
    row["mixing"] = case.options.get("mixing", "")
    found = _read(case, machine, seed, progress, total) if case.members else _trained(case, machine, seed, total)
    return [row | dict.fromkeys(MEASURED) | found | {"cpu_seconds": time.process_time() - began}]


def _options(case: Case) -> dict[str, str]:
    return {**case.options, "degree": str(case.degree)}


def _read(case: Case, machine: Machine, seed: int, progress: Progress, total: int) -> Row:
    """What neighbours learn."""
    options = {**_options(case), **({"colluders": str(case.members - 1)} if case.members > 1 else {})}
    defense = compose.parse_defense(case.protocol, options)
    settings = {
        "problem": {"model": "mlp", "clients": str(NODES)},
        "model": {"widths": "64"},
        "training": {"rounds": str(total or 31), "batch_size": "1", "lr": "0.1"},
        "attack": {"victims": str((total or 31) - 1), "window": str(total or 31)},
    }
    threats = tuple(Threat("client", form) for form in ("paper", "adaptive"))
    row: Row = {}
    for record in pairing("analytic", defense, threats, settings, machine, seed, progress):
        suffix, m = ", paper" if record["form"] == "paper" else "", record["metrics"]
        names = {"cosine": "cosine", "identified": "identified"}
        if not suffix:
            names |= {"low": "identified_low", "high": "identified_high"}
        for column, metric in names.items():
            value = m.get(metric)
            if value is not None:  # of the paper's two options the one that reads more
                row[column + suffix] = max(value, row.get(column + suffix) or value)
    return row


def _trained(case: Case, machine: Machine, seed: int, total: int) -> Row:
    """What the protocol learns."""
    given, usual = {"dataset": case.dataset, "model": "mlp", "clients": str(NODES)}, TRAININGS[case.dataset]
    rounds_of = {"rounds": str(total)} if total else {}
    settings = {"model": usual["model"], "training": {**usual["training"], **rounds_of}}
    spec = GroupSpec(
        problem=usual_problem(given, settings),
        defense=compose.parse_defense(case.protocol, _options(case)),
        attack=None,
        threats=(),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )
    problem = build(spec.problem, seed, machine.data_dir, machine.device)
    protocol = compose.make_defense(spec.defense, problem.task)
    run = rounds.run(protocol, problem, Rng(seed).child("federation"))
    nodes = node_metrics(FinishedRun(spec, problem, protocol, run))
    found = {"accuracy": "mean_model", "worst node": "node_worst", "consensus": "consensus"}
    return {column: nodes.get(name) for column, name in found.items()}


def draw(rows: Sequence[Row], path: Path) -> None:
    """The cosine over the size of the coalition, and the images identified, a panel for each degree."""

    def lines(degree: int, column: str) -> list[Line]:
        found = []
        for title, ratio in RATIOS.items():
            by_size: dict[int, list[float]] = {}
            for row in rows:
                if row["degree"] == degree and row["ratio"] == ratio and row["members"] and row[column] is not None:
                    by_size.setdefault(row["members"], []).append(row[column])
            sizes = sorted(by_size)
            found.append(Line(title=title, x=sizes, y=[fmean(by_size[k]) for k in sizes]))
        return [line for line in found if line.x]

    def panel(degree: int, column: str, what: str) -> Panel:
        title, ticks = f"{degree} neighbours", {float(k): str(k) for k in range(1, min(degree, MOST) + 1)}
        return Panel(title=title, lines=lines(degree, column), x="of them read", y=what, unit=True, ticks=ticks)

    grid = [
        [panel(degree, "cosine", "cosine of the gradient") for degree in DEGREES],
        [panel(degree, "identified", "images identified") for degree in DEGREES],
    ]
    save_png(panels(grid, "What neighbours learn of a node without a server, in adaptive form"), path)


TABLE = Table(
    setting=SETTING, pieces=tuple(PIECES), rows=measured_by_name(PIECES, measure), measured=MEASURED, draw=draw
)
