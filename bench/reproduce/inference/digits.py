"""Every inference attack against every seed defense on digits: by party, in the paper's form and the adaptive one.

Each pairing runs on its usual problem, as `bench run --defense D --attack A --dataset digits` does, shortened as
`SHORT` says. A cell is told by its goal's main metric; of several readings of what was seen it is of the one that leaks
most, in the mean over seeds, which the harness picks, who knows the truth; where they differ a note names it. What can
be read off the tensors alone that a protocol sends in clear beside hidden ones has lines of its own. `leak` is the
advantage over guessing, in [0, 1], by which goals can be compared. A cell without a number has a reason. Attacks that
are installed beside the package's own are in the table too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fedarena import goals
from fedarena.contracts.inference import Inference
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.text.mean import mean
from fedarena.core.threat import FORMS
from fedarena.federation import compose
from fedarena.federation.spec import threats
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.goals.property import IN_CLEAR
from fedarena.records.schema import Record
from fedarena.reproduce.inference.common import Progress, Settings, pairing
from fedarena.reproduce.place import Where

DEFENSES = ("fedavg", "dbcl", "two-stage", "baffle", "pbpfl")
ATTACKS = tuple(
    name
    for name in registry.registries()["attack"].names()
    if issubclass(registry.find("attack", name).load(), Inference)
)
SEARCH = {"victims": "3", "iterations": "600", "restarts": "4", "window": "30"}
SHORT: Mapping[str, Settings] = {
    "dlg": {"attack": SEARCH, "training": {"rounds": "31"}},
    "idlg": {"attack": SEARCH, "training": {"rounds": "31"}},
    "joint-membership": {"training": {"rounds": "60"}},
    "marginal-membership": {"training": {"rounds": "60"}},
    "last-layer-label": {"training": {"rounds": "60"}},
    "model-inversion": {"model": {"widths": "32"}},
    "model-extraction": {"training": {"rounds": "200"}},
    "gradient-estimate": {"attack": {"rounds": "30"}, "training": {"rounds": "100"}},
    "property-inference": {"model": {"widths": "32"}, "attack": {"rounds": "50"}, "training": {"rounds": "61"}},
    "membership-inference": {"model": {"widths": "32"}, "attack": {"shadows": "4"}},
    "inverting-gradients": {"attack": {"victims": "2", "iterations": "400"}, "training": {"rounds": "31"}},
    "analytic": {"attack": {"victims": "3"}, "training": {"rounds": "31"}},
}
"""Attack → options and schedule in place of the usual ones, so that no pairing takes more than a minute or so."""

ALIKE = "nothing of what was seen is in clear while the rest is hidden"

PIECES = tuple(f"{attack}, {defense}" for attack in ATTACKS for defense in DEFENSES)
MEASURED = ("value", "leak", "accuracy", "cpu_seconds")
SETTING = (
    "digits; what each attack reaches, by its goal's metric, as whom and in which form; pairings on their usual "
    "problems, shortened"
)


def rows(piece: str, where: Where, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """One pairing: a row for every party, form and reading."""
    attack, defense = piece.split(", ")
    return measure(attack, defense, where, seed, lambda share, text: progress(share, f"{piece}: {text}"))


def measure(
    attack: str, defense: str, where: Where, seed: int, progress: Progress, short: Settings | None = None
) -> list[dict[str, Any]]:
    """One pairing. A problem that the attack or the defense refuses gives rows that say so.

    Args:
        short: in place of `SHORT`.
    """
    began = time.process_time()
    goal = goals.find(registry.find("attack", attack).load().goal)
    whom = threats(goal.parties, FORMS)
    try:
        settings = SHORT.get(attack, {}) if short is None else short
        made = compose.parse_defense(defense)
        records, refused = pairing(attack, made, whom, settings, where, seed, progress), ""
    except UserError as error:
        records, refused = [], str(error)
    spent = time.process_time() - began
    found = []
    for threat in whom:
        own = [r for r in records if (r["party"], r["form"]) == (threat.party, threat.form)]
        named = {"attack": attack, "party": threat.party, "defense": defense, "form": threat.form}
        told = [_told(goal, r) for r in own] or [_row("", None, None, "refused", refused, "", None)]
        found += [{**named, **one, "cpu_seconds": spent} for one in told]
    return found


def _told(goal: InferenceGoal, record: Record) -> dict[str, Any]:
    """What a row says of one reading."""
    leak, metric = record["scores"].get("leak"), goal.text.wording(list(record["metrics"])).metric
    value = record["metrics"].get(metric) if leak is not None else None  # what is known before an attack is no result
    return _row(
        *(metric, value, leak, record["status"], record["reason"], record["reading"]),
        record["utility"]["clean_accuracy"],
    )


def _row(
    metric: str, value: float | None, leak: float | None, status: str, reason: str, reading: str, accuracy: float | None
) -> dict[str, Any]:
    return {
        "metric": metric,
        "value": value,
        "leak": leak,
        "status": status,
        "reason": reason,
        "reading": reading,
        "accuracy": accuracy,
    }


def compact(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """A line an attack and party, a column a defense and form; and notes, which the cells refer to by number: reasons,
    and which of several readings a number is of."""
    notes: list[str] = []
    lines: dict[tuple[str, str, str], dict[str, Any]] = {}
    defenses = [d for d in DEFENSES if any(row["defense"] == d for row in rows)]
    for row in rows:
        at = attack, party, part = row["attack"], row["party"], _part(row)
        if at not in lines:
            own = [r for r in rows if (r["attack"], r["party"]) == (attack, party)]
            metric = next((r["metric"] for r in own if r["metric"]), "-")
            lines[at] = {"attack": attack, "as the": f"{party}, {part}" if part else party, "by": metric}
            for defense in defenses:
                for form in FORMS:
                    these = [r for r in own if (r["defense"], r["form"]) == (defense, form)]
                    mine = [r for r in these if _part(r) == part or not r["reading"]]
                    text = _noted("n/a", ALIKE, notes) if these and not mine else _text(mine, notes)
                    lines[at][f"{defense}\n{form}"] = text
    spent = {(r["attack"], r["defense"], r["seed"]): r["cpu_seconds"] for r in rows}
    total, longest = sum(spent.values()), max(spent, key=lambda piece: spent[piece])
    told = [f"({i}) {reason}" for i, reason in enumerate(notes, 1)]
    return list(lines.values()), [
        *told,
        f"{len(spent)} pieces, {total:.0f} s of CPU time in all, {fmean(spent.values()):.0f} s on average; longest: "
        f"{longest[0]}, {longest[1]}, {spent[longest]:.0f} s.",
    ]


def _part(row: Mapping[str, Any]) -> str:
    """Which part of what was seen a row is of: what is in clear alone, or all."""
    return IN_CLEAR if row["reading"].endswith(IN_CLEAR) else ""


def _text(rows: Sequence[Mapping[str, Any]], notes: list[str]) -> str:
    """The mean over seeds with its 95 % interval, of the reading that has the most; what is not ok with its reason."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["value"] is not None:
            values.setdefault(row["reading"], []).append(row["value"])
    told, most = [], max(values, key=lambda reading: fmean(values[reading]), default="")
    if values:
        m = mean(values[most], len(values))
        number = f"{m.value:.2f}" + (f"±{m.half:.2f}" if m.half is not None else "")
        several = f"by '{most}', which has the most of {len(values)} readings"
        alike = len({fmean(some) for some in values.values()}) == 1
        told.append(number if alike else _noted(number, several, notes))
    for status, reason in dict.fromkeys((r["status"], r["reason"]) for r in rows if r["status"] != "ok"):
        told.append(_noted(status, reason, notes))
    return " ".join(told)


def _noted(text: str, note: str, notes: list[str]) -> str:
    """With the number of a note, which is added where it is new."""
    if note not in notes:
        notes.append(note)
    return f"{text} ({notes.index(note) + 1})"
