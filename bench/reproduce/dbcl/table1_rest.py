"""The rest of DBCL's Table 1 beside `dbcl/table1`: the MLP at the other participations, and the CNN at all of them.

Each entry is a federation of its own. The CNN is trained until 99 %, in five local epochs a round. The learning rate is
0.1 everywhere; the paper's were "tuned" and are not stated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedarena.reproduce.dbcl.table1 import LIMIT, MLP, PARTICIPATION, Network, Row, train
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row as TableRow
from fedarena.reproduce.table import Table, measured_by_name

CNN = Network("cnn-mnist", {}, 0.99, 5)

SETTING = (
    "rounds until 97% (MLP, 1 local epoch) or 99% (CNN, 5 local epochs) test accuracy on MNIST, by the share c of the "
    "100 clients that a round takes; iid, batch 10, s = d_in/2, SGD at 0.1"
)

SHARES = (0.01, 0.1, 0.2, 0.5, 1.0)
PAPER = {
    "MLP": (222, 96, 84, 83, 82),
    "MLP-Sketch": (572, 322, 308, 298, 287),
    "CNN": (462, 309, 97, 91, 31),
    "CNN-Sketch": (636, 176, 189, 170, 174),
}
"""Rounds at each share."""
HASHES = {"balanced hash (authors' code)": "balanced", "CountSketch (paper's text)": "countsketch"}


@dataclass(frozen=True)
class Entry:
    """One number of the table: a row whose `paper` is the number of rounds at this share of clients."""

    row: Row
    share: float

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.row.title}, c = {self.share:.0%}"


def _rows(network: Network, name: str) -> list[Row]:
    """The plain row and the sketched ones; their `paper` is filled in for each share."""
    sketched = [
        Row(title=f"{name}-Sketch, {hashed}", defense="dbcl", options={"hash": option}, paper=0, network=network)
        for hashed, option in HASHES.items()
    ]
    return [Row(title=name, defense="fedavg", options={}, paper=0, network=network), *sketched]


ENTRIES = tuple(
    Entry(replace(row, paper=PAPER[row.title.partition(",")[0]][SHARES.index(share)]), share)
    for name, network in (("MLP", MLP), ("CNN", CNN))
    for row in _rows(network, name)
    for share in SHARES
    if network is CNN or share != PARTICIPATION
)
BY_NAME = {entry.name: entry for entry in ENTRIES}


def measure(entry: Entry, machine: Machine, seed: int, progress: Progress) -> list[TableRow]:
    """The row of an entry."""
    run = train(entry.row, machine, seed, progress, entry.share)
    last = run.curve[-1]
    return [
        {
            "model": entry.row.title,
            "c": entry.share,
            "lr": entry.row.lr,
            "paper": entry.row.paper,
            "rounds": last.rounds if last.accuracy >= entry.row.network.target else f"more than {LIMIT}",
            "accuracy": last.accuracy,
            "cpu_seconds": run.seconds,
        }
    ]


TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=("rounds", "accuracy", "cpu_seconds"),
    published=tuple(
        Published(piece=name, paper=entry.row.paper, column="rounds", decimals=0, share=False, better="lower")
        for name, entry in BY_NAME.items()
    ),
)
