"""How much differential privacy limits each kind of inference, by ε: dp-sgd on digits at ε = ∞, 8, 2 and 0.5.

    membership, uploads    `joint-membership`: who was in the batch behind an upload
    membership, model      `membership-inference`: who was in the training set, by the model in the end
    property               `property-inference`: which uploads hold samples with a property
    samples                `dlg`: the images behind an upload

The attacker is always the server, who sees every noisy upload, in the adaptive form. The whole training of a line
promises its ε for one sample more or less, at the δ of the defense (N^-1.1). Each attack trains on its usual problem,
so that lines share ε and not σ. At ε = ∞ uploads are clipped and have no noise. Bars are 95 % intervals over seeds
(Student's t).

ε promises nothing about a property that many samples share, and it bounds the membership of one sample in the whole
training. A line may therefore fall slower or faster than another. For an upload, the question is about the very batch,
whose random sampling is part of what ε promises. Uploads are attacked from the first round on, and
their trainings are too short for a good model. The other lines show what ε costs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedarena import goals
from fedarena.core.text.figures import Line, Panel, panels, save_png
from fedarena.core.text.numbers import Mean, mean
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.goals.inference_table import cell_of
from fedarena.records.schema import Record
from fedarena.reproduce import measured_with
from fedarena.reproduce.inference.common import Settings, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed
from fedarena.reproduce.table import Row, Table

EPSILONS = {"∞": "none", "8": "8", "2": "2", "0.5": "0.5"}
"""ε as shown → the value of dp-sgd's option."""


@dataclass(frozen=True)
class Case:
    """One line of the curve: an attack, and its options and schedule where they differ from the usual ones."""

    title: str
    attack: str
    settings: Settings = field(default_factory=dict)


CASES = (
    Case("membership, uploads", "joint-membership", {"training": {"rounds": "100"}, "attack": {"rounds": "100"}}),
    Case("membership, model", "membership-inference", {"model": {"widths": "32"}, "attack": {"shadows": "8"}}),
    Case(
        "property",
        "property-inference",
        {"model": {"widths": "32"}, "attack": {"rounds": "100"}, "training": {"rounds": "111"}},
    ),
    Case(
        "samples",
        "dlg",
        {
            "problem": {"model": "lenet-dlg"},
            "attack": {"victims": "5", "iterations": "600", "restarts": "4", "prior": "none"},
            "training": {"rounds": "61", "lr": "0.3"},
        },
    ),
)
POINTS = {f"{case.title}, ε = {shown}": (case, shown) for case in CASES for shown in EPSILONS}
"""Piece → attack and ε."""
METRICS = ("auc", "recovered", "ssim", "prior_mean_ssim", "psnr", "prior_mean_psnr")
MEASURED = (*METRICS, "accuracy", "sigma", "cpu_seconds")
SETTING = "dp-sgd on digits: what inference attacks reach as the server, adaptive form, against ε; 95 % intervals"

MEAN = "the mean training image"
"""The reference for images in the picture: a guess that sees nothing."""


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One attack at one ε."""
    return [measure(*POINTS[piece], machine, seed, prefixed(progress, piece))]


def measure(case: Case, shown: str, machine: Machine, seed: int, progress: Progress) -> Row:
    """One attack at one ε (a key of `EPSILONS`)."""
    began = time.process_time()
    accounting = {} if EPSILONS[shown] == "none" else measured_with.ACCOUNTING  # without noise there is none
    defense = compose.parse_defense("dp-sgd", {"epsilon": EPSILONS[shown], **accounting})
    threat = Threat("server", "adaptive")
    records = pairing(case.attack, defense, (threat,), case.settings, machine, seed, progress)
    return row(case, shown, records, time.process_time() - began)


def row(case: Case, shown: str, records: Sequence[Record], seconds: float) -> Row:
    """The row of one pairing, for the reading that leaks most."""
    worst = cell_of(records, goals.find(records[0]["goal"]).text)
    assert worst is not None
    return {
        "inference": case.title,
        "attack": case.attack,
        "epsilon": shown,
        "status": worst.status,
        "reason": worst.reason,
        **{name: worst.value(name) for name in METRICS},
        "accuracy": records[0]["utility"]["clean_accuracy"],
        "sigma": records[0]["guarantees"]["sigma"],
        "cpu_seconds": seconds,
    }


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """A line for each attack and ε, with means over seeds and their intervals."""
    lines: list[Row] = []
    notes: list[str] = []
    for (title, shown), own in grouped(rows).items():
        means = {name.replace("prior_mean_", "mean image, "): _text(over_seeds(own, name)) for name in MEASURED}
        lines.append({"inference": title, "ε": shown, "seeds": len(own), **means})
        notes += [f"{title}, ε = {shown}, seed {r['seed']}: {r['status']}, {r['reason']}" for r in own if r["reason"]]
    return lines, notes


def grouped(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """(inference, ε) → its rows, one a seed."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for one in rows:
        groups.setdefault((one["inference"], one["epsilon"]), []).append(one)
    return groups


def over_seeds(rows: Sequence[Row], name: str) -> Mean | None:
    """Mean and 95 % half-width of a measurement, over the rows that have it."""
    values = [r[name] for r in rows if r[name] is not None]
    return mean(values) if values else None


def _text(m: Mean | None) -> str:
    if m is None:
        return "-"
    return f"{m.value:.3g}" + (f" ± {m.half:.2g}" if m.half is not None else "")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw AUC, recovered images, accuracy and the similarity of images over ε, with ∞ on the left."""
    groups, titles = grouped(rows), list(dict.fromkeys(r["inference"] for r in rows))
    places = {float(i): shown for i, shown in enumerate(EPSILONS)}

    def lines(name: str, called: str = "") -> list[Line]:
        """The lines of a measurement: one for each kind of inference that has it, under its own name or the given
        one."""
        drawn = []
        for title in titles:
            means = [(i, over_seeds(groups.get((title, shown), []), name)) for i, shown in enumerate(EPSILONS)]
            points = [(float(i), m) for i, m in means if m is not None]
            bars = [m.half or 0.0 for _, m in points]
            if points:
                drawn.append(Line(called or title, [i for i, _ in points], [m.value for _, m in points], error=bars))
        return drawn

    def panel(title: str, y: str, drawn: Sequence[Line], unit: bool = True) -> list[Panel]:
        return [Panel(title, lines=drawn, x="ε", y=y, unit=unit, ticks=places)] if drawn else []

    auc = lines("auc")
    chance = [Line("chance", list(places), [0.5] * len(places))] if auc else []
    upper = panel("members and properties", "AUC", [*auc, *chance]) + panel("images", "recovered", lines("recovered"))
    upper += panel("what it costs", "accuracy", lines("accuracy"))
    likeness = panel("images", "SSIM", lines("ssim") + lines("prior_mean_ssim", MEAN))
    likeness += panel("images", "PSNR in dB", lines("psnr") + lines("prior_mean_psnr", MEAN), unit=False)
    heading = "dp-sgd on digits, server, adaptive form; bars: 95 % intervals over seeds"
    save_png(panels([row for row in (upper, likeness) if row], heading), path)


TABLE = Table(setting=SETTING, pieces=tuple(POINTS), rows=rows, measured=MEASURED, compact=compact, draw=draw)
