"""Records → a board."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fedarena import goals
from fedarena.board.board import Arena, Board, BySeed, Cell, Honest, overall
from fedarena.core.files import digest
from fedarena.records.command import command_of
from fedarena.records.schema import Record
from fedarena.records.trial_key import hashed_problem

ROUND = 6
"""Decimals that are kept: beyond them is rounding, which differs between machines."""


@dataclass(frozen=True)
class Asked:
    """A trial that belongs on the board.

    Attributes:
        problem, defense, attack, party, form, knows, goal, seed: what it is; attack `none` where nobody attacks.
        records: what it gave; [] where it is missing.
        refused: why it cannot be run; empty for most.
        baseline: whether it is FedAvg on the problem as it stands, which utility is measured against.
        counts: whether it counts in scores and ranks.
        utility: whether its problem is one for utility.
    """

    problem: str
    defense: str
    attack: str
    party: str
    form: str
    knows: str
    goal: str
    seed: int
    records: Sequence[Record]
    refused: str = ""
    baseline: bool = False
    counts: bool = True
    utility: bool = True


def build(suite: str, title: str, asked: Sequence[Asked], notes: Iterable[str] = ()) -> Board:
    """The board of these trials."""
    calm = [t for t in asked if t.attack == "none"]
    arenas = tuple(_arena(p, [t for t in calm if t.problem == p]) for p in dict.fromkeys(t.problem for t in asked))
    plain = {arena.name: arena.fedavg for arena in arenas}
    honest: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    cells: dict[tuple[str, ...], list[Asked]] = defaultdict(list)
    for t in asked:
        if t.attack == "none":
            honest[t.problem, t.defense].append(t)
        else:
            cells[t.problem, t.defense, t.attack, t.party, t.form, t.knows].append(t)
    calmly = {place: _honest(trials, plain[place[0]]) for place, trials in honest.items()}
    known: dict[tuple[str, ...], tuple[str, ...]] = {place: h.marks for place, h in calmly.items()}
    return Board(
        suite,
        title,
        tuple(sorted({t.seed for t in asked})),
        arenas,
        tuple(calmly.values()),
        tuple(_cell(trials, known.get(place[:2], ())) for place, trials in cells.items()),
        _made([r for t in asked for r in t.records]),
        tuple(notes),
    )


def _arena(name: str, calm: Sequence[Asked]) -> Arena:
    runs = {t.seed: t.records[0] for t in calm if t.baseline and t.records}
    some = next((t.records[0] for t in calm if t.records), None)
    some = next(iter(runs.values()), some)
    if some is None:
        return Arena(name, "nothing measured", "", "accuracy", 0.0, {})
    useful = all(t.utility for t in calm)
    # A reference that diverged is none.
    accuracy = {s: _rounded(r["utility"]["clean_accuracy"]) for s, r in runs.items() if r["status"] != "diverged"}
    utility, problem = some["utility"], some["problem"]
    subset = problem["data"]["subset"]
    return Arena(
        *(name, _told(some), problem["dataset"], utility["measure"], _rounded(utility["chance"])),
        *(accuracy, subset, useful),
    )


def _told(record: Record) -> str:
    problem, training = record["problem"], record["options"]["training"]
    local = training["local_epochs"]
    parts = [
        problem["dataset"],
        f"model {problem['model']}",
        f"{problem['clients']} clients ({problem['partition']})",
        _corrupted(problem["corrupted"], problem["assumed_corrupted"]),
        f"FedAvg, {local} local epochs" if local else "FedSGD",
        f"batch {training['batch_size']}",
        f"{training['rounds']} rounds",
        f"learning rate {training['lr']:g}",
    ]
    return ", ".join(parts)


def _corrupted(number: int, expected: int) -> str:
    """A rule does what it expects to need: where it expects nobody it may be the plain mean."""
    if not number:
        return f"nobody corrupted, {expected} expected to be" if expected else "nobody corrupted or expected to be"
    told = f"{number} of them corrupted where they poison"
    return told if number == expected else f"{told}, {expected} expected to be"


def _honest(trials: Sequence[Asked], plain: BySeed) -> Honest:
    runs = {t.seed: t.records[0] for t in trials if t.records}
    statuses = {t.seed: _status(t, t.records[:1]) for t in trials}
    records = list(runs.values())
    accuracy = {seed: _rounded(r["utility"]["clean_accuracy"]) for seed, r in runs.items()}
    # What a model that diverged answers is no answer, be it right as often as a guess.
    useless = {seed for seed, value in plain.items() if value <= 0} | {s for s in runs if statuses[s] == "diverged"}
    utility = {
        seed: 0.0 if seed in useless else _rounded(min(1.0, max(0.0, value / plain[seed])))
        for seed, value in accuracy.items()
        if seed in plain
    }
    cost = [r["cost"] for r in records]
    seconds = [c["relative_seconds"] for c in cost if c["relative_seconds"] is not None]
    first = runs[min(runs)] if runs else None
    curve = [] if first is None else first["utility"]["clean_curve"]
    return Honest(
        trials[0].problem,
        trials[0].defense,
        *_together(statuses, {t.seed: t.refused or (t.records[0]["reason"] if t.records else "") for t in trials}),
        accuracy,
        utility,
        _mean([c["bytes_up"] for c in cost]),
        _mean([c["bytes_down"] for c in cost]),
        fmean(seconds) if seconds else None,
        _mean([c["peak_bytes"] for c in cost]),
        dict(first["guarantees"]) if first else {},
        tuple(dict.fromkeys(mark for r in records for mark in r["warnings"])),
        tuple((float(p[0]), _rounded(p[1])) for p in curve),
        tuple(r["key"] for r in records),
        command_of(first, _seeds(runs)) if first else "",
    )


def _cell(trials: Sequence[Asked], known: Sequence[str]) -> Cell:
    """Args: known: marks of the honest run, which are told of there."""
    one = trials[0]
    goal = goals.recorded(one.goal)
    readings = list(dict.fromkeys(r["reading"] for t in trials for r in t.records if r["reading"]))
    # A record without a reading (n/a, failed, diverged) stands for every reading, so that no seed is lost.
    by_reading = {
        name: {t.seed: [r for r in t.records if r["reading"] in (name, "")] for t in trials}
        for name in readings or [""]
    }
    by_seed = {name: _scores(found, goal.axis) for name, found in by_reading.items()}
    scored = {name: fmean(values.values()) for name, values in by_seed.items() if values}
    reading = min(scored, key=lambda n: scored[n]) if scored else next(iter(by_reading))
    shown = by_reading[reading]
    found = {seed: records[0] for seed, records in shown.items() if records}
    statuses = {t.seed: _status(t, shown[t.seed]) for t in trials}
    reasons = {t.seed: t.refused or (found[t.seed]["reason"] if t.seed in found else "") for t in trials}
    first = found[min(found)] if found else None
    metrics: dict[str, BySeed] = defaultdict(dict)
    for seed, record in found.items():
        for name, value in record["metrics"].items():
            metrics[name][seed] = _rounded(value)
    status, reason = _together(statuses, reasons)
    attacked = [] if first is None else first["attacked"].get("curve", [])
    return Cell(
        one.problem,
        one.defense,
        one.attack,
        goal.axis,
        one.goal,
        one.party,
        one.form,
        one.knows,
        status,
        reason,
        statuses,
        reading,
        by_seed[reading],
        dict(metrics),
        tuple((float(p[0]), _rounded(p[1])) for p in attacked),
        {n: [[_rounded(v) for v in point] for point in s] for n, s in (first["series"] if first else {}).items()},
        {seed: record["key"] for seed, record in found.items()},
        {name: _rounded(value) for name, value in scored.items() if name != reading},
        "; ".join(f"{name}: {who}" for name, who in (first["origins"] if first else {}).items()),
        _settings(first) if first else "",
        _defended(first) if first else "",
        dict(first["versions"]) if first else {},
        command_of(first, _seeds(found)) if first else "",
        one.counts and goal.of_data,
        tuple(dict.fromkeys(mark for r in found.values() for mark in r["warnings"] if mark not in known)),
    )


def doubt(record: Record) -> str:
    """Why a record's scores are not those that its own metrics give; empty where they are.

    They are not where somebody edited them, or the metrics, or took one out.
    """
    said, status = record["scores"], record["status"]
    if status not in ("ok", "diverged") or record["attack"] == "none":
        return f"it has scores ({_told_scores(said)}), where there was nothing to score" if said else ""
    if not (record["attacker_knowledge"] or record["goal"]):
        return "goal is empty, though it is of an inference attack"
    # Of a federation that diverged there may have been nothing left to attack.
    if status == "diverged" and not said:
        return ""
    try:
        anew = _scored(record)
    except KeyError as missing:
        return f"metrics has no {missing.args[0]}, from which its score follows"
    if set(said) == set(anew) and all(abs(said[name] - value) < 1e-6 for name, value in anew.items()):
        return ""
    return f"its scores ({_told_scores(said)}) do not follow from what was measured, which gives {_told_scores(anew)}"


def _scored(record: Record) -> dict[str, float]:
    """The scores that a record's metrics give. Raises KeyError for a metric that is not there."""
    return goals.recorded(record["goal"]).scores(record["metrics"], record["utility"])


def _told_scores(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in found.items()) or "none"


def _scores(found: Mapping[int, Sequence[Record]], axis: str) -> BySeed:
    return {
        seed: _rounded(records[0]["scores"][axis])
        for seed, records in found.items()
        if records and axis in records[0]["scores"]
    }


def _status(trial: Asked, records: Sequence[Record]) -> str:
    if trial.refused:
        return "n/a"
    return str(records[0]["status"]) if records else "missing"


def _together(statuses: Mapping[int, str], reasons: Mapping[int, str]) -> tuple[str, str]:
    """(status, reason) over seeds."""
    told: dict[str, list[int]] = defaultdict(list)
    for seed, why in reasons.items():
        if why:
            told[why].append(seed)
    if len(told) == 1 and len(next(iter(told.values()))) == len(statuses):
        reason = next(iter(told))
    else:
        reason = "; ".join(f"seed {', '.join(map(str, seeds))}: {why}" for why, seeds in told.items())
    return overall(statuses.values()), reason


def _settings(record: Record) -> str:
    """A digest of the problem and every option; seeds and versions left out."""
    return digest([hashed_problem(record["problem"]), record["options"]], 12)


def _defended(record: Record) -> str:
    """Likewise, without the attack's."""
    options = {name: value for name, value in record["options"].items() if not name.startswith(("attack", "probe"))}
    return digest([hashed_problem(record["problem"]), options], 12)


def _made(records: Sequence[Record]) -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for r in records:
        for name in ("fedarena", "commit", "python", "machine", "system"):
            value: Any = r["environment"].get(name)
            found[name].append(str(value or ""))
        found["torch"].append(str(r["environment"]["libraries"].get("torch", "")))
    return {name: ", ".join(v for v in dict.fromkeys(values) if v) for name, values in found.items()}


def _seeds(by_seed: Mapping[int, Any]) -> str:
    return ",".join(str(seed) for seed in sorted(by_seed))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _rounded(value: float) -> float:
    return round(float(value), ROUND)
