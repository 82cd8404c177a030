"""The matrix of defenses against gradient inversion: each defense, attack, stage of the training, batch and model.

Surveys of gradient inversion list its defenses, and which attacks they were tried against. Here all are tried: as the
server that sees each upload, on digits. The stages are the first round, the half and the end of a training, and the
model is a small dense or a small convolutional network. `identified` is the share of the victims to which the guess is
nearer than to 99 other samples (`docs/scoring-rules.md`). Victims that an attack cannot try count as not identified,
and a pairing that does not apply has its reason.

In paper form an attack takes what the protocol sends for the plain gradient, as the defenses' papers do. In adaptive
form it knows the protocol.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedarena.core.errors import UserError
from fedarena.core.text.figures import Map, maps, save_png
from fedarena.core.threat import FORMS, Threat
from fedarena.federation import compose
from fedarena.reproduce.inference.common import IDENTIFIED, Settings, most_identified, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed
from fedarena.reproduce.table import Row, Table

DEFENSES: Mapping[str, Mapping[str, str]] = {
    "fedavg": {},
    "pruning": {},
    "qsgd": {},
    "gradient-noise": {},
    "soteria": {},
    "censor": {},
    "dp-sgd": {"epsilon": "8"},
    "sign-dp": {"epsilon": "8"},
    "two-stage": {"epsilon": "8"},
    "fetchsgd": {},
    "dbcl": {},
    "pbpfl": {},
    "baffle": {},
    "precode": {},
    "ats": {},
    "sign-sgd": {},
}
"""Defense → options. The first is none."""
EXTENDED: Mapping[str, Mapping[str, str]] = {"precode": {"bottleneck": "256"}}
"""Defense → options of the model that it needs."""
ROUNDS = 300
MODELS: Mapping[str, Mapping[str, str]] = {"mlp": {"widths": "64"}, "cnn": {}}
"""Model → options."""
VICTIMS: Mapping[int, str] = {1: "10", 8: "3", 32: "1"}
"""Batch → uploads attacked."""
STAGES: Mapping[str, int] = {"untrained": 0, "half": ROUNDS // 2, "trained": ROUNDS - 12}
"""Stage → first round of a window of 12."""
SEARCHED = {"victims": "2"}
"""Fewer uploads, at batch 1, of attacks that search."""
ATTACKS: Mapping[str, Mapping[str, str]] = {
    "analytic": {},
    "spear": {"draws": "20000"},
    "inverting-gradients": {"iterations": "400", "restarts": "2", "max_batch": "32"},
    "dlg": {"iterations": "300", "restarts": "4", "max_batch": "32"},
}
"""Attack → options. The first two do not search, and need a dense first layer."""

Piece = tuple[str, int, str, str, str]
"""Model, batch, stage, attack, defense."""
PIECES: Mapping[str, Piece] = {
    f"{model}, batch {batch}, {stage}, {attack}, {defense}": (model, batch, stage, attack, defense)
    for model, batch, stage, attack, defense in itertools.product(MODELS, VICTIMS, STAGES, ATTACKS, DEFENSES)
}
MEASURED = (*IDENTIFIED, "cpu_seconds")
SETTING = (
    f"digits, 4 clients, {ROUNDS} rounds at rate 0.1, the server reads single uploads; share of the victims identified "
    "among 100"
)


def settings(piece: Piece) -> Settings:
    """The options of the problem and of the attack, as text."""
    model, batch, stage, attack, defense = piece
    searches = attack in ("inverting-gradients", "dlg")
    return {
        "problem": {"model": model, "clients": "4"},
        "model": {**MODELS[model], **EXTENDED.get(defense, {})},
        "training": {"rounds": str(ROUNDS), "batch_size": str(batch), "lr": "0.1"},
        "attack": {
            "victims": VICTIMS[batch],
            "start": str(STAGES[stage]),
            "window": "12",
            **ATTACKS[attack],
            **(SEARCHED if searches and batch == 1 else {}),
        },
    }


def rows(name: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One pairing at one stage: a row for each form."""
    return measure(PIECES[name], machine, seed, prefixed(progress, name))


def measure(piece: Piece, machine: Machine, seed: int, progress: Progress, given: Settings | None = None) -> list[Row]:
    """As `rows`. `given` replaces `settings`."""
    began, records, refusal = time.process_time(), [], ""
    attackers = [Threat("server", form) for form in FORMS]
    model, batch, stage, attack, name = piece
    try:
        defense = compose.parse_defense(name, {f"{name}.{o}": value for o, value in DEFENSES[name].items()})
        records = pairing(attack, defense, attackers, given or settings(piece), machine, seed, progress)
    except UserError as error:
        refusal = str(error)
    spent = (time.process_time() - began) / len(attackers)
    found = []
    for threat in attackers:
        own = [r for r in records if r["form"] == threat.form]
        named = {
            "model": model,
            "batch": batch,
            "stage": stage,
            "attack": attack,
            "defense": name,
            "form": threat.form,
        }
        found.append({**named, **most_identified(own, refusal), "cpu_seconds": spent})
    return found


def worst(rows: Sequence[Row], column: str = "identified") -> Mapping[tuple[str, int, str, str, str], float]:
    """(model, batch, stage, defense, form) → the largest share of an attack in a column, in the mean over seeds."""
    shares: dict[tuple[str, int, str, str, str], dict[str, list[float]]] = {}
    for row in rows:
        if row[column] is not None:
            key = row["model"], row["batch"], row["stage"], row["defense"], row["form"]
            shares.setdefault(key, {}).setdefault(row["attack"], []).append(row[column])
    return {key: max(sum(some) / len(some) for some in of.values()) for key, of in shares.items()}


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """A line for each defense; a cell is what the best attack finds, per cent, at the stages one after another."""
    most = {column: worst(rows, column) for column in ("identified", "recovered")}
    attacks: dict[tuple[str, int, str, str], set[str]] = {}
    for row in rows:
        attacks.setdefault((row["model"], row["batch"], row["stage"], row["defense"]), set()).add(row["attack"])

    def cell(model: str, batch: int, stage: str, defense: str, form: str, column: str) -> str:
        tried = attacks.get((model, batch, stage, defense))
        if tried is None:
            return "-"
        found = most[column].get((model, batch, stage, defense, form))
        return ("n/a" if found is None else f"{100 * found:.0f}") + ("" if len(tried) == len(ATTACKS) else "*")

    columns = [c for c in itertools.product(MODELS, VICTIMS) if any((row["model"], row["batch"]) == c for row in rows)]
    lines = []
    for defense in (d for d in DEFENSES if any(row["defense"] == d for row in rows)):
        line: Row = {"defense": defense}
        for model, batch in columns:
            for form, (column, words) in itertools.product(FORMS, (("identified", ""), ("recovered", ", recovered"))):
                cells = [cell(model, batch, stage, defense, form, column) for stage in STAGES]
                line[f"{model}, {batch}\n{form}{words}"] = " / ".join(cells)
            own = [r for r in rows if (r["model"], r["batch"], r["defense"]) == (model, batch, defense)]
            accuracies = [r["accuracy"] for r in own if r["accuracy"] is not None]
            line[f"{model}, {batch}\naccuracy"] = f"{100 * sum(accuracies) / len(accuracies):.0f}" if accuracies else ""
        lines.append(line)
    return lines, [
        "Per cent identified by the best of the attacks, and recovered by the one that recovers most, at an untrained, "
        "half trained and trained model. The columns are the model and the batch.",
        "n/a: no attack applies. -: nothing was measured. *: a part of the attacks was not measured.",
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Two maps, paper and adaptive form: defenses by settings, the darker the more is identified."""
    most = worst(rows)
    defenses = [d for d in DEFENSES if any(row["defense"] == d for row in rows)]
    measured = {key[:3] for key in most}
    columns = [column for column in itertools.product(MODELS, VICTIMS, STAGES) if column in measured]

    def shown(form: str) -> Map:
        return Map(
            title=f"{form} form",
            shares=[[most.get((*column, d, form), float("nan")) for column in columns] for d in defenses],
            rows=defenses,
            columns=[f"{model}, {batch}, {stage}" for model, batch, stage in columns],
        )

    grid = [[shown(form) for form in FORMS]]
    save_png(maps(grid, "Per cent of the victims identified by the best attack (chance: 1)"), path)


TABLE = Table(setting=SETTING, pieces=tuple(PIECES), rows=rows, measured=MEASURED, compact=compact, draw=draw)
