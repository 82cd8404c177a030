"""Model inversion of the models that federations release: faces and digits.

Fredrikson et al. (2015, Section 5) invert models of AT&T's faces, and ask people whether they recognise the person.
Here the same faces (39 of the 40 people, 112×92) train federations, and a separate classifier is the judge
(`fedarena.goals.inversion`).

Each party attacks the model that it has in the end: a client the model in clear, the server its own where that differs,
and an outsider by queries. Rows `as published` take the paper's cost, start and step.

PBPFL trains for squared errors and releases a model with masked units, which computes the same function. It is compared
with FedAvg with the same loss and the same network, and a note says how much they differ.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedarena.core import registry
from fedarena.core.text.figures import Strip, gallery, save_png
from fedarena.core.threat import Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.goals.prepared import PreparedRecord
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce import measured_with
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed, step
from fedarena.reproduce.table import Row, Table
from fedarena.runs import trial

SETTING = (
    "model inversion of the released model; recognised: by a classifier trained apart, top-1; SSIM to the class's mean "
    "training image and to the likest single one; one picture for all classes is recognised in 1/classes"
)
MEASURED = ("accuracy", "recognised", "among_five", "ssim", "nearest_ssim", "confidence", "steps", "queries")
SHOWN = 8
"""The number of classes in the picture."""


@dataclass(frozen=True)
class Case:
    """One federation, and how its model is attacked.

    Attributes:
        title: the name by which `--only` selects it. dataset: the data set. widths: of a fully connected network, empty
            for softmax regression.
        clients, schedule: the federation. defenses: the defenses under which it is trained.
        settings: (name, options of the attack, parties that use them).
    """

    title: str
    dataset: str
    widths: str
    clients: int
    schedule: Schedule
    defenses: tuple[str, ...]
    settings: tuple[tuple[str, tuple[tuple[str, str], ...], tuple[Party, ...]], ...]


_PAPER = (("cost", "confidence"), ("start", "zeros"))
_SMOOTH = (("lr", "10"), ("denoise", "0.1"))
_BLOCKS = (("lr", "10"), ("block", "8"))
_SQUARED = (("lr", "1"), ("denoise", "0.1"), ("iterations", "1000"))
_DIGITS: tuple[tuple[str, tuple[tuple[str, str], ...], tuple[Party, ...]], ...] = (
    ("usual", (), ("server", "client", "outsider")),
)

CASES = (
    Case(
        title="faces, softmax",
        dataset="olivetti",
        widths="",
        clients=2,
        schedule=Schedule(rounds=500, batch_size=32, lr=0.03),
        defenses=("fedavg",),
        settings=(
            ("as published", _PAPER, ("client",)),
            ("lr 1", (("lr", "1"),), ("client",)),
            ("lr 10, smoothed", _SMOOTH, ("client",)),
            ("lr 10, blocks of 8", _BLOCKS, ("outsider",)),
        ),
    ),
    Case(
        title="faces, 64 units",
        dataset="olivetti",
        widths="64",
        clients=2,
        schedule=Schedule(rounds=500, batch_size=32, lr=0.05),
        defenses=("fedavg", "dbcl"),
        settings=(("lr 1", (("lr", "1"),), ("client",)), ("lr 10, smoothed", _SMOOTH, ("client",))),
    ),
    Case(
        title="faces, 64 units, squared error",
        dataset="olivetti",
        widths="64",
        clients=2,
        schedule=Schedule(rounds=2000, batch_size=32, lr=0.003, loss="mse"),
        defenses=("fedavg", "pbpfl"),
        settings=(("lr 1, smoothed", _SQUARED, ("server", "client")),),
    ),
    Case(
        title="digits, 32 units",
        dataset="digits",
        widths="32",
        clients=20,
        schedule=Schedule(rounds=200, batch_size=16, lr=0.2),
        defenses=("fedavg", "dbcl", "two-stage", "baffle"),
        settings=_DIGITS,
    ),
    Case(
        title="digits, 32 units, squared error",
        dataset="digits",
        widths="32",
        clients=20,
        schedule=Schedule(rounds=500, batch_size=16, lr=0.2, loss="mse"),
        defenses=("fedavg", "pbpfl"),
        settings=_DIGITS,
    ),
)

PAIRINGS = {f"{case.title}: {defense}": (case, defense) for case in CASES for defense in case.defenses}
"""Piece → federation and defense."""


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row for each way in which a party attacks one federation."""
    return measure(*PAIRINGS[piece], machine, seed, progress)


def measure(case: Case, defense: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row for each way in which a party attacks the model of one federation. It is trained again for each."""
    problem = ProblemSpec(
        dataset=case.dataset,
        model="mlp",
        partition="iid",
        clients=case.clients,
        model_options=registry.find("model", "mlp").parse({"widths": case.widths}),
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=case.schedule,
    )
    named = prefixed(progress, f"{case.title}, {defense}")
    rows = []
    for i, (name, options, parties) in enumerate(case.settings):
        spec = GroupSpec(
            problem=problem,
            defense=measured_with.defense(defense),
            attack=compose.parse_attack("model-inversion", dict(options)),
            threats=tuple(Threat(party, "paper") for party in parties),
            seed=seed,
            device=machine.device,
            data_dir=machine.data_dir,
        )
        own = step(named, i, len(case.settings))
        for prepared in trial.prepare(spec, own):
            rows.append({"federation": case.title, "defense": defense, "attack": name} | _row(prepared, own))
    return rows


def _row(prepared: PreparedRecord, progress: Progress) -> Row:
    """The columns of one party's attack."""
    record, pictures = trial.attack(prepared, progress)
    m = record["metrics"]
    row = {
        "party": record["party"],
        "accuracy": record["utility"]["clean_accuracy"],
        "recognised": m.get("top1"),
        "among_five": m.get("top5"),
        "ssim": m.get("ssim"),
        "nearest_ssim": m.get("nearest_ssim"),
        "confidence": m.get("confidence"),
        "steps": m.get("steps"),
        "queries": m.get("queries"),
        "reason": record["reason"],
        "known": {key: m[key] for key in m if key.startswith(("prior_", "evaluator_", "ceiling_", "classes"))},
    }
    if pictures is not None:
        row |= {"originals": packed(pictures.originals), "portraits": packed(pictures.guesses)}
    return row


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows without pictures, and sentences on them."""
    hidden = ("known", "originals", "portraits", "seed", "reason")
    shown = [{k: v for k, v in row.items() if k not in hidden} for row in rows]
    if len({row["seed"] for row in rows}) > 1:
        shown = [{"seed": row["seed"]} | columns for row, columns in zip(rows, shown, strict=True)]
    failures = [
        f"{row['defense']} on {row['federation']}, {row['party']}: {row['reason']}" for row in rows if row["reason"]
    ]
    return shown, failures + references(rows) + masked(rows)


def references(rows: Sequence[Row]) -> list[str]:
    """Sentences by data set: how often the classifier is right on held-out images and on guesses that see no model."""
    notes = []
    for dataset in dict.fromkeys(row["federation"].partition(",")[0] for row in rows):
        known = next((r["known"] for r in rows if r["federation"].startswith(dataset) and r["known"]), None)
        if known is not None:
            notes.append(
                f"{dataset}: the classifier is right for {known['evaluator_accuracy']:.1%} of held-out images and "
                f"{known['ceiling_top1']:.1%} of the class means; one picture for all is recognised in "
                f"{known['prior_top1']:.1%}; SSIM to the class mean of grey {known['prior_grey_ssim']:.2f}, of the "
                f"mean training image {known['prior_mean_ssim']:.2f}."
            )
    return notes


def masked(rows: Sequence[Row]) -> list[str]:
    """Sentences that compare the model that PBPFL's clients get with its server's own model and with FedAvg's."""
    notes = []
    for row in rows:
        if row["defense"] != "pbpfl" or row["party"] != "client" or row["recognised"] is None:
            continue
        alike = [r for r in rows if all(r[k] == row[k] for k in ("seed", "federation", "attack")) and r["recognised"]]
        own = [r for r in alike if (r["defense"], r["party"]) == ("pbpfl", "server")]
        plain = [r for r in alike if (r["defense"], r["party"]) == ("fedavg", "client")]
        notes.append(
            f"{row['federation']}, seed {row['seed']}: {against(row, own, 'the server has without masks')}; "
            f"{against(row, plain, 'FedAvg trains')}."
        )
    return notes


def against(row: Row, others: Sequence[Row], whose: str) -> str:
    """A sentence that compares the model that PBPFL's clients get with another one."""
    if not others:
        return f"nothing to set beside it of the model that {whose}"
    other = others[0]
    apart = float((unpacked(row["portraits"]) - unpacked(other["portraits"])).abs().mean())
    equal = "the same" if row["recognised"] == other["recognised"] else "not quite the same"
    return (
        f"PBPFL's release gives {equal} as the model that {whose}, {row['recognised']:.0%} recognised against "
        f"{other['recognised']:.0%}, SSIM {row['ssim']:.3f} against {other['ssim']:.3f}, pixels apart by {apart:.1g}"
    )


def packed(images: Tensor) -> dict[str, Any]:
    """The first `SHOWN` images in 256 greys, as text."""
    grey = (images[:SHOWN].clamp(0, 1) * 255).round().to(torch.uint8)
    return {"shape": list(grey.shape), "bytes": base64.b64encode(grey.numpy().tobytes()).decode()}


def unpacked(text: Mapping[str, Any]) -> Tensor:
    """The images that were packed, in [0, 1]."""
    flat = np.frombuffer(base64.b64decode(text["bytes"]), dtype=np.uint8).reshape(text["shape"])
    return torch.from_numpy(flat.copy()).float() / 255


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the pictures of the first seed's clients and outsiders in rows below the mean images of the classes."""
    strips: list[Strip] = []
    before = ""
    for row in rows:
        if row["seed"] != rows[0]["seed"] or "portraits" not in row or row["party"] == "server":
            continue
        if row["federation"] != before:
            before = row["federation"]
            strips.append(Strip(f"{before}\nclass means", unpacked(row["originals"]), gap=bool(strips)))
        title = f"{row['defense']}, {row['party']}\n{row['attack']}: {row['recognised']:.0%} recognised"
        strips.append(Strip(title, unpacked(row["portraits"])))
    save_png(gallery(strips, f"model inversion, seed {rows[0]['seed']}", SHOWN), path)


TABLE = Table(setting=SETTING, pieces=tuple(PAIRINGS), rows=rows, measured=MEASURED, compact=compact, draw=draw)
