"""Every inference attack against every seed defense on digits: by party, in the paper's form and the adaptive one.

Each pairing runs on its usual problem, as `bench run --defense D --attack A --dataset digits` does, shortened as
`SHORT` says. A cell shows the main metric of its goal. If there are several readings of what was seen, the cell shows
the one that leaks most in the mean over seeds, and a note names it. The harness picks it, since it knows the truth.
Attacks on the tensors alone that a protocol sends in clear beside hidden ones have lines of their own.
`leak` is the advantage over guessing, in [0, 1], by which goals can be compared. A cell without a number has a reason.
The table also has attacks that other packages add.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from statistics import fmean

from fedarena import goals
from fedarena.contracts.inference import Inference
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import mean
from fedarena.core.threat import FORMS
from fedarena.federation.spec import threats
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.goals.property import IN_CLEAR
from fedarena.records.schema import Record
from fedarena.reproduce import measured_with
from fedarena.reproduce.inference.common import Settings, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed
from fedarena.reproduce.table import Row, Table

DEFENSES = ("fedavg", "dbcl", "two-stage", "baffle", "pbpfl")
ATTACKS = tuple(
    name
    for name in registry.registries()["attack"].names()
    if issubclass(registry.find("attack", name).load(), Inference)
)
SEARCH = {"victims": "3", "iterations": "600", "restarts": "4", "window": "30", "prior": "none"}
FEW: Settings = {
    "problem": {"partition": "few"},
    "partition": {"samples": "20"},
    "training": {"rounds": "60"},
    "attack": {"rounds": "5"},
}
PAPERS_NETWORK: Settings = {"problem": {"model": "lenet-dlg"}, "training": {"rounds": "31", "lr": "0.3"}}
SHORT: Mapping[str, Settings] = {
    "dlg": {"attack": SEARCH, **PAPERS_NETWORK},
    "idlg": {"attack": SEARCH, **PAPERS_NETWORK},
    "joint-membership": {"training": {"rounds": "60"}},
    "marginal-membership": {"training": {"rounds": "60"}},
    "last-layer-label": {"training": {"rounds": "60"}},
    "model-inversion": {"model": {"widths": "32"}},
    "model-extraction": {"training": {"rounds": "200"}},
    "gradient-estimate": {"attack": {"rounds": "30"}, "training": {"rounds": "100"}},
    "property-inference": {"model": {"widths": "32"}, "attack": {"rounds": "50"}, "training": {"rounds": "61"}},
    "membership-inference": {"model": {"widths": "32"}, "attack": {"shadows": "4"}},
    "inverting-gradients": {"attack": {"victims": "2", "iterations": "400"}, "training": {"rounds": "31"}},
    "multi-step": {"attack": {"victims": "2", "iterations": "200"}, "training": {"rounds": "31"}},
    "analytic": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "april": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "spear": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "r-gap": {"attack": {"victims": "3"}, **PAPERS_NETWORK},
    "affine-model": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "fishing": {"attack": {"victims": "3", "iterations": "300"}, "training": {"rounds": "31"}},
    "chosen-features": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "imprint": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "inconsistent-masks": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "loki": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "inconsistent-models": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "spotlight": {"attack": {"victims": "3", "draws": "20000"}, "training": {"rounds": "31"}},
    "trap-weights": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
    "fedmia": FEW,
    "upload-regression": FEW,
    "source-inference": FEW,
}
"""Attack → options and schedule in place of the usual ones, so that no pairing takes more than a minute or so."""

ALIKE = "nothing of what was seen is in clear while the rest is hidden"

PAIRINGS = {f"{attack}, {defense}": (attack, defense) for attack in ATTACKS for defense in DEFENSES}
"""Piece → attack and defense."""
MEASURED = ("value", "leak", "accuracy", "cpu_seconds")
SETTING = (
    "digits; what each attack reaches, by its goal's metric, as whom and in which form; pairings on their usual "
    "problems, shortened"
)


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One pairing: a row for every party, form and reading."""
    return measure(*PAIRINGS[piece], machine, seed, prefixed(progress, piece))


def measure(
    attack: str, defense: str, machine: Machine, seed: int, progress: Progress, short: Settings | None = None
) -> list[Row]:
    """One pairing. A problem that the attack or the defense refuses gives rows that say so.

    Args:
        short: replaces `SHORT`.
    """
    began = time.process_time()
    goal = goals.find(registry.find("attack", attack).load().goal)
    attackers = threats(goal.parties, FORMS)
    settings = SHORT.get(attack, {}) if short is None else short
    refusal = ""
    records: list[Record] = []
    try:
        records = pairing(attack, measured_with.defense(defense), attackers, settings, machine, seed, progress)
    except UserError as error:
        refusal = str(error)
    spent = time.process_time() - began
    rows = []
    for threat in attackers:
        own = [r for r in records if (r["party"], r["form"]) == (threat.party, threat.form)]
        named = {"attack": attack, "party": threat.party, "defense": defense, "form": threat.form}
        results = [_result(goal, record) for record in own] or [_refused(refusal)]
        rows += [{**named, **result, "cpu_seconds": spent} for result in results]
    return rows


def _result(goal: InferenceGoal, record: Record) -> Row:
    """The columns of one reading."""
    leak, metric = record["scores"].get("leak"), goal.text.wording(list(record["metrics"])).metric
    return {
        "metric": metric,
        # Metrics that are known before an attack are not its results.
        "value": record["metrics"].get(metric) if leak is not None else None,
        "leak": leak,
        "status": record["status"],
        "reason": record["reason"],
        "reading": record["reading"],
        "accuracy": record["utility"]["clean_accuracy"],
    }


def _refused(reason: str) -> Row:
    """The columns of a pairing that could not be run."""
    return {
        "metric": "",
        "value": None,
        "leak": None,
        "status": "refused",
        "reason": reason,
        "reading": "",
        "accuracy": None,
    }


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """A line for each attack and party, and a column for each defense and form.

    The cells refer to notes by number. A note is the reason of a missing number, or names the reading of a number.
    """
    notes: list[str] = []
    lines: dict[tuple[str, str, str], Row] = {}
    defenses = [d for d in DEFENSES if any(row["defense"] == d for row in rows)]
    for row in rows:
        key = row["attack"], row["party"], _part(row)
        if key not in lines:
            own = [r for r in rows if (r["attack"], r["party"]) == key[:2]]
            lines[key] = _line(own, key[2], defenses, notes)
    numbered = [f"({i}) {reason}" for i, reason in enumerate(notes, 1)]
    return list(lines.values()), [*numbered, _time(rows)]


def _line(rows: Sequence[Row], part: str, defenses: Sequence[str], notes: list[str]) -> Row:
    """One line: the rows of an attack and party, for everything that was seen or for a part of it."""
    attack, party = rows[0]["attack"], rows[0]["party"]
    metric = next((r["metric"] for r in rows if r["metric"]), "-")
    line = {"attack": attack, "as the": f"{party}, {part}" if part else party, "by": metric}
    for defense, form in itertools.product(defenses, FORMS):
        own = [r for r in rows if (r["defense"], r["form"]) == (defense, form)]
        of_part = [r for r in own if _part(r) == part or not r["reading"]]
        line[f"{defense}\n{form}"] = _noted("n/a", ALIKE, notes) if own and not of_part else _text(of_part, notes)
    return line


def _time(rows: Sequence[Row]) -> str:
    """A sentence on how long the pieces took."""
    spent = {(r["attack"], r["defense"], r["seed"]): r["cpu_seconds"] for r in rows}
    longest = max(spent, key=lambda piece: spent[piece])
    return (
        f"{len(spent)} pieces, {sum(spent.values()):.0f} s of CPU time in all, {fmean(spent.values()):.0f} s on "
        f"average; longest: {longest[0]}, {longest[1]}, {spent[longest]:.0f} s."
    )


def _part(row: Row) -> str:
    """The part of what was seen that a row is about: what is in clear alone, or everything."""
    return IN_CLEAR if row["reading"].endswith(IN_CLEAR) else ""


def _text(rows: Sequence[Row], notes: list[str]) -> str:
    """The mean over seeds of the reading with the highest mean, with its 95 % interval, and the reasons of failures."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["value"] is not None:
            values.setdefault(row["reading"], []).append(row["value"])
    texts, most = [], max(values, key=lambda reading: fmean(values[reading]), default="")
    if values:
        m = mean(values[most], len(values))
        number = f"{m.value:.2f}" + (f"±{m.half:.2f}" if m.half is not None else "")
        several = f"by '{most}', which has the most of {len(values)} readings"
        alike = len({fmean(some) for some in values.values()}) == 1
        texts.append(number if alike else _noted(number, several, notes))
    for status, reason in dict.fromkeys((r["status"], r["reason"]) for r in rows if r["status"] != "ok"):
        texts.append(_noted(status, reason, notes))
    return " ".join(texts)


def _noted(text: str, note: str, notes: list[str]) -> str:
    """The text with the number of a note, which is added if it is new."""
    if note not in notes:
        notes.append(note)
    return f"{text} ({notes.index(note) + 1})"


TABLE = Table(setting=SETTING, pieces=tuple(PAIRINGS), rows=rows, measured=MEASURED, compact=compact)
