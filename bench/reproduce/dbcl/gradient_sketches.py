"""DBCL beside a rival that sketches gradients, FetchSGD (Rothchild et al. 2020).

The DBCL paper says (Section 1): "sketching the gradients protects privacy at the cost of substantial worse test
accuracy. In contrast, our method does not hinder test accuracy at all." It names SEGA and Li et al. 2019, and measures
neither. Here all train the MLP of Table 1 on MNIST for as many rounds, with 10 of 100 clients a round, one local epoch,
batch 10, SGD at 0.1. `behind` is FedAvg's accuracy less the row's: of DBCL at most 0.02 agrees with the paper's words,
of FetchSGD at the same bytes more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fedarena.reproduce.dbcl.table1 import MLP, Row, train
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed, step
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row as TableRow
from fedarena.reproduce.table import Table, measured_by_name

SETTING = (
    "test accuracy after so many rounds, MNIST, MLP 784-200-200-10, 100 clients iid, c = 10%, 1 local epoch, batch 10, "
    "SGD at 0.1; behind: FedAvg's less the row's; bytes of a client up"
)
LITTLE = 0.02
"""The difference that the paper's "does not hinder" allows, and its "substantial worse" does not."""
ENDLESS = replace(MLP, target=math.inf)
"""The network without an accuracy that ends its training."""


def _row(title: str, defense: str, **options: str) -> Row:
    return Row(title=title, defense=defense, options=options, paper=0, network=ENDLESS)


PLAIN = _row("FedAvg", "fedavg")
DBCL = _row("DBCL, balanced hash, s = d/2", "dbcl", hash="balanced")
SAME_BYTES = _row("FetchSGD, half of FedAvg's bytes", "fetchsgd", ratio="0.5")
ROWS = (PLAIN, DBCL, SAME_BYTES, _row("FetchSGD, a tenth of FedAvg's bytes", "fetchsgd", ratio="0.1"))


@dataclass(frozen=True)
class Length:
    """How long all train."""

    rounds: int

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"mnist, {self.rounds} rounds"


LENGTHS = (Length(100), Length(300))


def measure(length: Length, machine: Machine, seed: int, progress: Progress) -> list[TableRow]:
    """A row a protocol."""
    measured: list[TableRow] = []
    plain = math.nan
    for i, row in enumerate(ROWS):
        told = prefixed(step(progress, i, len(ROWS)), row.title)
        run = train(row, machine, seed, told, rounds=length.rounds)
        plain = run.accuracy if row is PLAIN else plain
        diverged = run.diverged_at is not None
        measured.append(
            {
                "protocol": row.title,
                "rounds": length.rounds,
                "accuracy": None if diverged else run.accuracy,
                "behind": None if diverged or row is PLAIN else plain - run.accuracy,
                "bytes_up": run.bytes_up,
                "cpu_seconds": run.seconds,
            }
        )
    return measured


def published(length: Length) -> tuple[Published, ...]:
    """What the paper says in words."""
    return tuple(
        Published(
            piece=length.name, paper=words, column="behind", row=(("protocol", row.title),), within=within, better=""
        )
        for row, words, within in (
            (DBCL, "does not hinder test accuracy at all", (-1.0, LITTLE)),
            (SAME_BYTES, "substantial worse test accuracy", (LITTLE, 1.0)),
        )
    )


BY_NAME = {length.name: length for length in LENGTHS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=("accuracy", "behind", "bytes_up", "cpu_seconds"),
    published=tuple(one for length in LENGTHS for one in published(length)),
)
