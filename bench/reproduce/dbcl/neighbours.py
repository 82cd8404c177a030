"""DBCL, Appendix D: what neighbours learn of each other where there is no server.

The paper says that a neighbour's gradient attacks apply there, that sketches stop them, and leaves both for later. Here
twelve nodes on a regular graph take one sample a round. A curious neighbour, alone or with others of the victim's
neighbours, or an eavesdropper on one edge reads messages in the paper's form and with the smoother of
`fedarena.defenses.dbcl.neighbour_estimate`. Images are read off the estimated gradient of a dense layer (`analytic`),
or found by matching gradients (`dlg`), which the paper's claim is about.

    cosine      of the estimated gradient of hidden layers with the victim's, the median over rounds
    identified  share of the victim's images that the attack finds; of two readings the one that finds more

The pieces `trains` say what the sketches cost: the mean of the nodes' own accuracies, the worst node's and that of the
mean model after 300 rounds of batches of 16, and how far nodes are from each other. On MNIST network, batch and rate
are those of `fedarena.reproduce.dbcl.table1`, and a round is an epoch over 600 of a node's samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

from fedarena.core.binomial import TOGETHER
from fedarena.core.rng import Rng
from fedarena.core.text.figures import Line, Panel, panels, save_png
from fedarena.core.text.numbers import Mean, mean, number, percent, share
from fedarena.core.threat import FORMS, Form, Party, Threat
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.nodes import node_metrics
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.text import interval
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.records.schema import Record
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
HASHES = ("uniform", "countsketch", "gaussian")
"""In place of the balanced hash."""
SETTING = (
    f"digits, {NODES} nodes on a random regular graph, mlp of 64 units; messages read in 30 rounds of one sample at "
    "rate 0.1 (dlg: 10 of them, elu); `trains`: 300 rounds of batches of 16 at rate 0.5, on MNIST 40 rounds of 60 "
    "batches of 10 at rate 0.1, mlp of 200 and 200 units"
)
ROUNDS = 31
ATTACKS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "analytic": {"model": {"widths": "64"}, "attack": {"victims": "30"}},
    "dlg": {"model": {"widths": "64", "activation": "elu"}, "attack": {"victims": "10"}},
}
"""Attack → network and number of images; matching gradients needs a smooth activation."""
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
    """A protocol on a graph, and who reads it.

    Attributes:
        attack: what reads; "": nothing does, and the models are measured.
        ratio, hash, mixing: options of `dbcl-peers`; "": the usual ones, and without a ratio it is `d-sgd`.
        members: how many of the victim's neighbours read; 0: an eavesdropper does.
    """

    attack: str
    degree: int
    ratio: str
    members: int = 0
    hash: str = ""
    mixing: str = ""
    dataset: str = "digits"

    @property
    def reader(self) -> str:
        """Who reads, in words; "" where nobody does."""
        if not self.attack:
            return ""
        return f"{self.members} of the neighbours" if self.members else "eavesdropper"

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        data = "" if self.dataset == "digits" else self.dataset
        size = next(name for name, ratio in RATIOS.items() if ratio == self.ratio)
        words = filter(None, (data, f"degree {self.degree}", size, self.hash, self.mixing, self.reader))
        return f"{self.attack or 'trains'}: {', '.join(words)}"

    @property
    def party(self) -> Party:
        return "client" if self.members else "eavesdropper"

    @property
    def defense(self) -> MethodSpec:
        options = {"degree": str(self.degree), "ratio": self.ratio, "hash": self.hash, "mixing": self.mixing}
        options["colluders"] = str(self.members - 1) if self.members > 1 else ""
        given = {option: value for option, value in options.items() if value}
        return compose.parse_defense("dbcl-peers" if self.ratio else "d-sgd", given)


SKETCHES = tuple(filter(None, RATIOS.values()))
CASES = (
    *(
        Case(attack="analytic", degree=degree, ratio=ratio, members=members)
        for degree in DEGREES
        for ratio in RATIOS.values()
        for members in range(min(degree, MOST) + 1)
    ),
    *(
        Case(attack="analytic", degree=4, ratio=ratio, members=members, hash=hash)
        for hash in HASHES
        for ratio in SKETCHES
        for members in (1, 2, 4)
    ),
    *(
        Case(attack="dlg", degree=degree, ratio=ratio, members=members)
        for degree in DEGREES
        for ratio in RATIOS.values()
        for members in range(min(degree, MOST) + 1)
    ),
    *(
        Case(attack="dlg", degree=4, ratio=ratio, members=members, hash=hash)
        for hash in HASHES
        for ratio in ("0.5", "0.25")
        for members in (1, 2)
    ),
    *(Case(attack="", degree=degree, ratio=ratio) for degree in DEGREES for ratio in RATIOS.values()),
    Case(attack="", degree=4, ratio="0.5", mixing="unbiased"),
    *(Case(attack="", degree=4, ratio=ratio, dataset="mnist") for ratio in ("", "0.5", "0.25")),
)
PIECES: Mapping[str, Case] = {case.name: case for case in CASES}
MEASURED = (
    *("cosine", "identified", "identified_low", "identified_high"),
    *("accuracy", "worst node", "mean model", "consensus", "cpu_seconds"),
)


def measure(case: Case, machine: Machine, seed: int, progress: Progress, total: int = 0) -> list[Row]:
    """One piece: a row for each form in which messages are read, or one of the models. `total` replaces the rounds."""
    began = time.process_time()
    found = _read(case, machine, seed, progress, total) if case.attack else {"": _trained(case, machine, seed, total)}
    spent = (time.process_time() - began) / len(found)
    usual: Row = {**asdict(case), "reader": case.reader, "form": "", **dict.fromkeys(MEASURED), "cpu_seconds": spent}
    return [usual | {"form": form} | row for form, row in found.items()]


def _read(case: Case, machine: Machine, seed: int, progress: Progress, total: int) -> dict[Form, Row]:
    """What readers learn, by form."""
    count, usual = str(total or ROUNDS), ATTACKS[case.attack]
    settings = {
        "problem": {"model": "mlp", "clients": str(NODES)},
        "model": usual["model"],
        "training": {"rounds": count, "batch_size": "1", "lr": "0.1", "lr_schedule": "constant"},
        "attack": {**usual["attack"], "window": count},
    }
    threats = tuple(Threat(case.party, form) for form in FORMS)
    return by_form(pairing(case.attack, case.defense, threats, settings, machine, seed, progress))


def by_form(records: Sequence[Record]) -> dict[Form, Row]:
    """What readers learn, by form; {} where nothing could be read."""
    return {form: _most([r for r in records if r["form"] == form and r["status"] == "ok"]) for form in FORMS}


def _most(records: Sequence[Record]) -> Row:
    """What is read in one form by the reading that identifies most, with an interval that holds for all of them."""
    if not records:
        return {}
    m = max((record["metrics"] for record in records), key=lambda m: m["identified"])
    ends = {name: m.get(name + TOGETHER, m[name]) for name in ("identified_low", "identified_high")}
    return {"cosine": m["cosine"], "identified": m["identified"], **ends}


def _trained(case: Case, machine: Machine, seed: int, total: int) -> Row:
    """What the protocol learns."""
    given, usual = {"dataset": case.dataset, "model": "mlp", "clients": str(NODES)}, TRAININGS[case.dataset]
    rounds_of = {"rounds": str(total)} if total else {}
    settings = {"model": usual["model"], "training": {**usual["training"], **rounds_of}}
    spec = GroupSpec(
        problem=usual_problem(given, settings),
        defense=case.defense,
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
    found = {"worst node": "node_worst", "mean model": "mean_model", "consensus": "consensus"}
    return {"accuracy": run.accuracy} | {column: nodes.get(name) for column, name in found.items()}


def _tenths(m: Mean) -> str:
    """A share in percent with one decimal: "96.3 ± 0.2 %"."""
    return share(m, lambda value: f"{100 * value:.1f}", " %")


TEXTS: Mapping[str, Callable[[Mean], str]] = {
    "cosine": number,
    "identified": percent,
    "accuracy": _tenths,
    "worst node": _tenths,
    "mean model": _tenths,
    "consensus": number,
    "cpu_seconds": lambda m: f"{m.value:.1f}",
}
"""Column → how its mean over seeds is written."""


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """A line for each setting: means over seeds with 95 % intervals."""
    settings: dict[tuple[tuple[str, object], ...], list[Row]] = {}
    for row in rows:
        heading = tuple((name, value) for name, value in row.items() if name not in (*MEASURED, "seed"))
        settings.setdefault(heading, []).append(row)
    lines = []
    for heading, own in settings.items():
        of_all = [name for name in MEASURED if all(row.get(name) is not None for row in own)]
        m = {name: mean([row[name] for row in own]) for name in of_all}
        if "identified" in m:
            m["identified"] = replace(m["identified"], half=None, ends=interval(m, "identified"))
        cells = {name: text(m[name]) if name in m else None for name, text in TEXTS.items() if name in own[0]}
        lines.append({**dict(heading), "seeds": len(own), **cells})
    return lines, [
        "Means over seeds. 95 % intervals are over seeds; of images identified, over images where that is wider."
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Over the number of neighbours that read: the cosine and the images identified, for each degree and attack, and
    with other hashes."""

    def line(title: str, column: str, wanted: Row) -> Line:
        by_size: dict[int, list[float]] = {}
        for row in rows:
            if row["members"] and row[column] is not None and wanted.items() <= row.items():
                by_size.setdefault(row["members"], []).append(row[column])
        sizes = sorted(by_size)
        return Line(title=title, x=sizes, y=[fmean(by_size[k]) for k in sizes])

    def panel(title: str, column: str, y: str, of_all: Row, of_lines: Mapping[str, Row]) -> Panel:
        usual: Row = {"form": "adaptive", "attack": "analytic", "degree": 4, "hash": ""} | of_all
        lines = [line(name, column, usual | own) for name, own in of_lines.items()]
        lines = [one for one in lines if one.x]
        ticks = {size: str(size) for one in lines for size in one.x}
        return Panel(title=title, lines=lines, x="neighbours that read", y=y, unit=True, ticks=ticks)

    sizes = {name: {"ratio": ratio} for name, ratio in RATIOS.items()}
    hashes = {"balanced": {"hash": ""}, **{name: {"hash": name} for name in HASHES}}
    found = "images identified"
    grid = [
        [panel(f"degree {n}", "cosine", "cosine of the gradient", {"degree": n}, sizes) for n in DEGREES],
        [panel(f"degree {n}, first layer", "identified", found, {"degree": n}, sizes) for n in DEGREES],
        [
            panel(f"degree {n}, matching gradients", "identified", found, {"degree": n, "attack": "dlg"}, sizes)
            for n in DEGREES
        ],
        [
            panel(f"degree 4, hashes at {name}", "identified", found, sizes[name], hashes)
            for name, ratio in RATIOS.items()
            if ratio
        ],
    ]
    save_png(panels(grid, "What neighbours learn of a node without a server, in adaptive form"), path)


TABLE = Table(
    setting=SETTING,
    pieces=tuple(PIECES),
    rows=measured_by_name(PIECES, measure),
    measured=MEASURED,
    compact=compact,
    draw=draw,
)
