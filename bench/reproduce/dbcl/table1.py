"""DBCL, Table 1, MLP rows: rounds of FedAvg to 97 % on MNIST, with and without sketching.

Paper, c = participation of 1, 10, 20, 50, 100 %: MLP 222, 96, 84, 83, 82 rounds, MLP-Sketch 572, 322, 308,
298, 287. The text gives the ratios as a range, 2.6 to 3.6; that at c = 10 % is derived here, 322/96. Setting (Section
6.2): 784-200-200-10, 100 clients IID, one local epoch, batch 10, s = d_in/2; the learning rate was "tuned" and is not
stated. Measured here at c = 10 %; `dbcl/table1-rest` holds the other participations and the CNN.

The paper describes a CountSketch, the authors' code draws a balanced hash. A coordinate shares its bucket
with about (d − 1)/s = 2 others under the first and with exactly one under the second, so that the first
has about twice the variance; both are run. `ratio` is to the plain network at the same learning rate;
the plain network is run at a larger one, too, which suits it better.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.federation import rounds as federation
from fedarena.federation.rounds import Point
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed, step
from fedarena.reproduce.published import Cause, Published
from fedarena.reproduce.table import Row as TableRow
from fedarena.reproduce.table import Table

TARGET, LIMIT, PARTICIPATION = 0.97, 1000, 0.1

SETTING = (
    f"rounds until {TARGET:.0%} test accuracy on MNIST; MLP 784-200-200-10, 100 clients iid, c = {PARTICIPATION:.0%}, "
    "1 local epoch, batch 10, s = d_in/2, SGD"
)


@dataclass(frozen=True)
class Network:
    """A model of the registry with its options, the accuracy that ends its training, and its local epochs."""

    model: str
    options: dict[str, str]
    target: float
    local_epochs: int


MLP = Network("mlp", {"widths": "200,200"}, TARGET, 1)


@dataclass(frozen=True)
class Row:
    """One row of the table: a protocol, its options, the paper's number of rounds, the learning rate, the network."""

    title: str
    defense: str
    options: dict[str, str]
    paper: int
    lr: float = 0.1
    network: Network = MLP


PLAIN = Row(title="MLP", defense="fedavg", options={}, paper=96)
ROWS = (
    PLAIN,
    Row(title="MLP, larger learning rate", defense="fedavg", options={}, paper=96, lr=0.2),
    Row(title="MLP-Sketch, balanced hash (authors' code)", defense="dbcl", options={"hash": "balanced"}, paper=322),
    Row(title="MLP-Sketch, CountSketch (paper's text)", defense="dbcl", options={"hash": "countsketch"}, paper=322),
)


COUNTSKETCH = (
    Cause("the text's CountSketch has twice the variance of the balanced hash of the authors' code, which has a row"),
)
FASTER_PLAIN = (
    Cause(
        "the plain network's learning rate, which the paper does not state: at 0.2, a row of its own, the plain "
        "network takes fewer rounds and the ratio is 3.6 to 4.1 (reports/measured/dbcl.md)"
    ),
)
"""Why the balanced hash's ratio is below the paper's."""


def _causes(row: Row, column: str) -> tuple[Cause, ...]:
    if row.options.get("hash") == "countsketch":
        return COUNTSKETCH
    return FASTER_PLAIN if row.options.get("hash") == "balanced" and column == "ratio" else ()


RATIO_DECIMALS = 3
"""Decimals of the ratio to the plain network, which is derived from two printed numbers."""

ALL = "all"
"""The only piece."""
PUBLISHED = (
    *(
        Published(
            piece=ALL,
            paper=row.paper,
            column="rounds",
            row=(("model", row.title),),
            decimals=0,
            share=False,
            better="lower",
            causes=_causes(row, "rounds"),
        )
        for row in ROWS
    ),
    *(
        Published(
            piece=ALL,
            paper=round(row.paper / PLAIN.paper, RATIO_DECIMALS),
            column="ratio",
            row=(("model", row.title),),
            decimals=RATIO_DECIMALS,
            share=False,
            better="lower",
            derived=f"{row.paper}/{PLAIN.paper}",
            causes=_causes(row, "ratio"),
        )
        for row in ROWS
        if row.defense == "dbcl"
    ),
)


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[TableRow]:
    """The rows, with their ratio to the plain network."""
    measured: list[TableRow] = []
    plain: int | None = None
    for i, row in enumerate(ROWS):
        run = train(row, machine, seed, prefixed(step(progress, i, len(ROWS)), row.title))
        last = run.curve[-1]
        reached = last.rounds if last.accuracy >= TARGET else None
        plain = reached if row is PLAIN else plain
        sketched = row.defense == "dbcl"
        measured.append(
            {
                "model": row.title,
                "lr": row.lr,
                "paper_rounds": row.paper,
                "rounds": reached or f"more than {LIMIT}",
                "paper_ratio": row.paper / PLAIN.paper if sketched else None,
                "ratio": reached / plain if sketched and reached and plain else None,
                "bytes_up": run.bytes_up,
                "bytes_down": run.bytes_down,
                "accuracy": last.accuracy,
                "cpu_seconds": run.seconds,
            }
        )
    return measured


def train(
    row: Row,
    machine: Machine,
    seed: int,
    progress: Progress,
    participation: float = PARTICIPATION,
    rounds: int = LIMIT,
) -> federation.Run:
    """Train until the target, or for so many rounds."""
    network = row.network
    schedule = Schedule(
        rounds=rounds,
        loss="cross-entropy",
        batch_size=10,
        local_epochs=network.local_epochs,
        participation=participation,
        lr=row.lr,
        eval_every=1,
    )
    spec = ProblemSpec(
        dataset="mnist",
        model=network.model,
        partition="iid",
        clients=100,
        model_options=registry.find("model", network.model).parse(network.options),
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=schedule,
    )
    problem = build(spec, seed, machine.data_dir, machine.device)
    card = registry.find("defense", row.defense)
    defense = card.load()(card.parse(row.options), problem.task)

    def reached(point: Point) -> bool:
        return point.accuracy >= network.target

    return federation.run(
        defense,
        problem,
        Rng(seed).child("federation"),
        progress=lambda share: progress(share, "training"),
        stop=reached,
    )


NOTES = ("The paper calls its learning rates tuned and does not state them. Ours is 0.1 where no other is named.",)

TABLE = Table(setting=SETTING, pieces=(ALL,), rows=rows, published=PUBLISHED, notes=NOTES)
