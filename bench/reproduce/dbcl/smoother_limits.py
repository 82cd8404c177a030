"""Where a neighbour's smoother of DBCL's sketches stops: one thing changed at a time.

The smoother is `fedarena.defenses.dbcl.neighbour_estimate`. As in `fedarena.reproduce.dbcl.neighbours`, twelve nodes
with four neighbours each take one sample a round, and 30 rounds are read from the first one on, by one or by two of the
victim's neighbours. Beside the smoother stand consecutive sketches, expanded and subtracted (`paper`).

    cosine      of the estimated gradient of hidden layers with the victim's, the median over rounds
    identified  share of the victim's images that `analytic` reads off the gradient; "" where an upload is not of one
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from fedarena.core.text.figures import Line, Panel, panels, save_png
from fedarena.core.threat import FORMS, Form, Threat
from fedarena.federation import compose
from fedarena.records.schema import Record
from fedarena.reproduce.dbcl.neighbours import ATTACKS, NODES, ROUNDS, by_form, compact
from fedarena.reproduce.inference.common import Settings, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

RATIO, DEGREE = "0.5", "4"
SETTING = (
    f"digits, {NODES} nodes on a random regular graph of degree {DEGREE}, mlp of 64 units; sketches of half the size, "
    "read in 30 rounds of one sample at rate 0.1, unless another value is named"
)
MEASURED = ("cosine", "identified", "identified_low", "identified_high", "cpu_seconds")


@dataclass(frozen=True)
class Change:
    """What differs from the usual case.

    Attributes:
        what, value: the quantity and its value, in words.
        defense: options of `dbcl-peers`; with ratio "" models are sent (`d-sgd`).
        settings: options of the problem and of the attack.
        images: whether an upload is of one image, so that images identified mean something.
    """

    what: str
    value: str
    defense: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    images: bool = True

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.what}: {self.value}"


def _training(what: str, name: str, values: Sequence[str], images: bool = True, **others: str) -> list[Change]:
    """Values of an option of the training, which may need other ones."""
    return [
        Change(what, value=value, settings={"training": {name: value, **others}}, images=images) for value in values
    ]


def _read_from(what: str, windows: Mapping[str, tuple[int, int]]) -> list[Change]:
    """Value → the first round that is read, and how many are written down."""
    return [
        Change(
            what,
            value=value,
            settings={
                "attack": {"start": str(start), "window": str(window)},
                "training": {"rounds": str(start + window)},
            },
        )
        for value, (start, window) in windows.items()
    ]


STARTS = {start: (int(start), ROUNDS) for start in ("30", "100", "300", "1000")}
CHANGES = (
    *(Change("s/d", value=ratio, defense={"ratio": ratio}) for ratio in ("0.5", "0.25", "0.125", "0.0625")),
    *_read_from("first round read", STARTS),
    *(replace(one, what="models sent, first round read", defense={"ratio": ""}) for one in _read_from("", STARTS)),
    *_read_from("rounds read, from the 100th on", {str(n): (100, n + 1) for n in (3, 10)}),
    *_training("rate", "lr", ("0.01", "0.5")),
    *_training("batch", "batch_size", ("4", "16"), images=False),
    *_training(
        "local steps of batches of 16", "local_samples", ("32", "64"), images=False, batch_size="16", local_epochs="1"
    ),
    *_training("momentum", "momentum", ("0.9",), images=False, client_optimizer="momentum"),
    *(
        Change("shards", value=partition, settings={"problem": {"partition": partition}, "partition": options})
        for partition, options in {"dirichlet": {"alpha": "0.1"}, "sorted": {}}.items()
    ),
)


@dataclass(frozen=True)
class Case:
    """A change, and how many of the victim's neighbours read."""

    change: Change
    members: int

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.change.name}, {self.members} of the neighbours"


CASES: Mapping[str, Case] = {case.name: case for case in (Case(one, members) for one in CHANGES for members in (1, 2))}


def measure(case: Case, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """A row for each form."""
    began, change = time.process_time(), case.change
    given = {"ratio": RATIO, "degree": DEGREE, **({"colluders": "1"} if case.members > 1 else {}), **change.defense}
    attack = "analytic" if change.images else "last-layer-label"  # reading the images of a batch takes minutes
    usual = {
        "problem": {"model": "mlp", "clients": str(NODES)},
        "training": {"rounds": str(ROUNDS), "batch_size": "1", "lr": "0.1", "lr_schedule": "constant"},
        "model": ATTACKS["analytic"]["model"],
        "attack": {**ATTACKS["analytic"]["attack"], "window": str(ROUNDS)} if change.images else {"rounds": "30"},
    }
    settings = {name: {**usual.get(name, {}), **change.settings.get(name, {})} for name in {*usual, *change.settings}}
    threats = [Threat("client", form) for form in FORMS]
    protocol = compose.parse_defense("dbcl-peers" if given["ratio"] else "d-sgd", {k: v for k, v in given.items() if v})
    records = pairing(attack, protocol, threats, settings, machine, seed, progress)
    found = by_form(records) if change.images else _cosines(records)
    spent = (time.process_time() - began) / len(found)
    heading: Row = {"what": change.what, "value": change.value, "members": case.members}
    empty = dict.fromkeys(MEASURED)
    return [{**heading, "form": form, **empty, **row, "cpu_seconds": spent} for form, row in found.items()]


def _cosines(records: Sequence[Record]) -> dict[Form, Row]:
    """By form, the cosine of the reading that has the larger one."""
    ok = [record for record in records if record["status"] == "ok"]
    cosines = {form: [record["metrics"]["cosine"] for record in ok if record["form"] == form] for form in FORMS}
    return {form: {"cosine": max(own)} if own else {} for form, own in cosines.items()}


def draw(rows: Sequence[Row], path: Path) -> None:
    """The cosine over the values of quantities that have several, for one reader, two, and one in the paper's form."""
    readers = {
        "one neighbour": {"members": 1, "form": "adaptive"},
        "two": {"members": 2, "form": "adaptive"},
        "one, paper form": {"members": 1, "form": "paper"},
    }

    def panel(what: str) -> Panel:
        values = list(dict.fromkeys(change.value for change in CHANGES if change.what == what))

        def line(title: str, wanted: Row) -> Line:
            own = {
                value: [
                    row["cosine"]
                    for row in rows
                    if row["cosine"] is not None and (wanted | {"what": what, "value": value}).items() <= row.items()
                ]
                for value in values
            }
            shown = [(i, fmean(cosines)) for i, cosines in enumerate(own.values()) if cosines]
            return Line(title=title, x=[x for x, _ in shown], y=[y for _, y in shown])

        lines = [one for one in (line(title, wanted) for title, wanted in readers.items()) if one.x]
        return Panel(title=what, lines=lines, x="", y="cosine", unit=True, ticks=dict(enumerate(values)))

    values_of = Counter(change.what for change in CHANGES)
    shown = [panel(what) for what, values in values_of.items() if values > 2]  # fewer are no curve
    save_png(panels([shown], "Where the smoother of neighbours' sketches stops"), path)


TABLE = Table(
    setting=SETTING,
    pieces=tuple(CASES),
    rows=measured_by_name(CASES, measure),
    measured=MEASURED,
    compact=compact,
    draw=draw,
)
