"""Methods that do nothing any more, told by equality: a test of scores needs a loss that is large, equality does not.

A defense that became FedAvg gives exactly FedAvg's accuracy. Corrupted clients that follow the protocol give exactly
the accuracy of the run in which nobody is corrupted, since all random streams are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.board.board import Board, Cell, Honest

NO_DEFENSE = "it seems to do nothing: for every seed exactly FedAvg's accuracy, which it did not have"
NO_ATTACK = "it seems to do nothing: for every seed exactly the accuracy without it, which was not so"

ENOUGH = 6
"""Runs of an attack that must agree: an accuracy of some hundred samples may by chance be what it was."""


def undefended_now(base: Board, new: Board) -> set[tuple[str, str]]:
    """(problem, defense) of honest runs that give exactly FedAvg's accuracy for every seed, which they did not."""
    before, now = _undefended(base), _undefended(new)
    there = {(h.problem, h.defense) for h in base.honest if h.status != "missing"}
    return {place for place in now - before if place in there}


def harmless_now(base: Board, new: Board) -> set[tuple[str, ...]]:
    """Places of poisoning cells that give exactly the honest run's accuracy for every seed, which they did not.

    Of attacks of which most cells that were not so before are so now, on two defenses and in `ENOUGH` runs at least.
    """
    before, now = _harmless(base), _harmless(new)
    seeds = {c.place: len(c.scores) for c in new.cells}
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for c in base.cells:
        if before.get(c.place) is False and c.place in now:
            groups.setdefault((c.attack, c.form, c.knows), []).append(c)
    found: set[tuple[str, ...]] = set()
    for cells in groups.values():
        idle = [c for c in cells if now[c.place]]
        several = len({c.defense for c in idle}) > 1 and sum(seeds[c.place] for c in idle) >= ENOUGH
        if several and 2 * len(idle) > len(cells):
            found |= {c.place for c in idle}
    return found


def _undefended(board: Board) -> set[tuple[str, str]]:
    plain = {a.name: a.fedavg for a in board.arenas}
    return {
        (h.problem, h.defense)
        for h in board.honest
        if h.defense != "fedavg" and _equal(h.accuracy, plain.get(h.problem, {}))
    }


def _harmless(board: Board) -> dict[tuple[str, ...], bool]:
    """Whether a poisoning cell's accuracies are those of the honest run; of cells that have both."""
    calm: dict[tuple[str, str], Honest] = {(h.problem, h.defense): h for h in board.honest}
    found = {}
    for c in board.cells:
        own, attacked = calm.get((c.problem, c.defense)), c.metrics.get("accuracy", {})
        if c.axis == "integrity" and own is not None and set(attacked) & set(own.accuracy):
            found[c.place] = _equal(attacked, own.accuracy)
    return found


def _equal(a: Mapping[int, float], b: Mapping[int, float]) -> bool:
    shared = set(a) & set(b)
    return bool(shared) and all(a[seed] == b[seed] for seed in shared)
