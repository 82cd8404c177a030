"""Who sees what. The answer comes from two rounds that are really played, so that it cannot drift from the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedarena import goals
from fedarena.contracts.transcript import Round
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, nbytes, row
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import ProblemSpec

ROUNDS = 2

UNSENT = "not sent, on average"
"""The part of one whole upload that the mean lacks: some clients dropped out or sent less than a tensor holds."""

OTHER_EDGES = "the node's other edges, on average"
"""Without a server, what a node sends beside one message."""


def explain(spec: ProblemSpec, defense: MethodSpec, attack: MethodSpec, data_dir: Path | None) -> dict[str, Any]:
    """The wires with shapes and bytes; for every party, what it sees and what the attack is given."""
    goal = goals.of_attack(attack)
    goal.require_attackers(spec, attack)
    problem = build(spec, 0, data_dir, auxiliary=compose.auxiliary(defense))
    protocol = compose.make_defense(defense, problem.task)  # planned for the whole schedule, played for two rounds
    schedule = replace(spec.schedule, rounds=ROUNDS, eval_every=0)
    problem = replace(problem, task=replace(problem.task, schedule=schedule))
    run = federation.run(protocol, problem, Rng(0).child("federation"), watch=range(ROUNDS))
    if not run.rounds:
        raise UserError("too few clients were left in both rounds that explain plays: set dropout lower, or 0")
    whole = replace(problem, task=replace(problem.task, schedule=spec.schedule))
    parties = [asdict(party) for party in goal.explain(whole, protocol, run, attack)]
    cards = [
        registry.find("defense", defense.name),
        *(registry.find_part(part.name) for part in defense.rest),
        *(registry.find("attack", part.name) for part in (attack, *attack.rest)),
    ]
    wires = _wires(run, "" if protocol.secure is None else protocol.secure.besides)
    return {
        "methods": [{"kind": card.kind, "name": card.name, "title": card.title} for card in cards],
        "wires": wires,
        "bytes": {name: sum(r["bytes"] for r in wires if r["wire"] == name) for name in _names(wires)},
        "parties": parties,
        "server": _server(problem, run),
        "guarantees": protocol.guarantees(),
        "facts": [*_failed(run), *([f"{card.name}, {label}", text] for card in cards for label, text in card.facts)],
    }


def _server(problem: Problem, run: federation.Run) -> str:
    """A sentence that says what the server holds and decides."""
    if run.models:
        return f"there is none; of {len(problem.shards)} nodes {problem.task.assumed_corrupted} are assumed corrupted"
    held = 0 if problem.auxiliary is None else problem.auxiliary.y.numel()
    judged = ", ".join(run.verdicts[0].values) if run.verdicts else "none"
    return (
        f"it holds {held} samples of its own, assumes that {problem.task.assumed_corrupted} of {len(problem.shards)} "
        f"clients are corrupted and never learns which; what it records of each upload: {judged}"
    )


def _wires(run: federation.Run, besides: str) -> list[dict[str, Any]]:
    """What crosses the wires, so that the rows of a wire add up to the mean over all sampled clients.

    The rows are one client's tensors in the first round, what later rounds send down if that differs, and what the mean
    has in addition (for a secure sum) or lacks.
    """
    first, last = run.rounds[0], run.rounds[-1]
    if first.messages:
        return _edges(run, first)
    up = row(first.ups, 0) if first.wire is None else {"masked": first.wire[0]}
    wires = {"down": first.down, "up": up}
    if set(last.down) != set(first.down):
        wires = {"down": first.down, "down, later": last.down, "up": up}
    sent = nbytes(up) * _sending(run.rounds)
    keys_up = 0.0 if first.wire is None else run.bytes_up - sent
    keys_down = run.bytes_down - sum(nbytes(r.down) for r in run.rounds) / len(run.rounds)
    rows = []
    for name, tensors in wires.items():
        rows += _wire(name, tensors, first.params)
        rows += _further(name, besides, keys_up if name == "up" else keys_down)
    return rows + _further("up", UNSENT, run.bytes_up - nbytes(up) - keys_up)


def _edges(run: federation.Run, first: Round) -> list[dict[str, Any]]:
    """What crosses an edge in one direction, without a server, and the rest of what a node sends and hears."""
    message = next(iter(first.messages.values()))
    rest = run.bytes_up - nbytes(message)
    return [*_wire("edge", message, first.params), *_further("edge", OTHER_EDGES, rest)]


def _sending(rounds: Sequence[Round]) -> float:
    """The share of the sampled clients that sent an upload. Clients that dropped out before left zeros."""
    sent = [float(r.wire.ne(0).any(1).sum()) if r.wire is not None else len(r.participants) for r in rounds]
    return sum(sent) / sum(len(r.participants) for r in rounds)


def _names(wires: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["wire"] for row in wires))


def _failed(run: federation.Run) -> list[list[str]]:
    if not run.failed:
        return []
    text = "too few clients were left for a secure sum; what crosses is read off the others"
    return [[f"{run.failed} of the {ROUNDS} rounds played gave nothing", text]]


def _wire(name: str, tensors: Tensors, plain: Tensors) -> list[dict[str, Any]]:
    rows = []
    for tensor, t in tensors.items():
        shape = " x ".join(map(str, t.shape))
        same = " x ".join(map(str, plain[tensor].shape)) if tensor in plain else "-"
        bytes_ = t.numel() * t.element_size()
        rows.append({"wire": name, "tensor": tensor, "shape": shape, "bytes": bytes_, "plain": same})
    return rows


def _further(wire: str, what: str, bytes_: float) -> list[dict[str, Any]]:
    """A row for bytes that belong to no tensor; empty if there are none."""
    if not round(bytes_):
        return []
    return [{"wire": wire, "tensor": what, "shape": "-", "bytes": round(bytes_), "plain": "-"}]
