"""Whether a board's scores are those that its own metrics give, as `fedarena.board.build.doubt` asks of records.

A published board is a file that anyone may edit. A score without its metrics, or one that does not follow from them,
is no result, whichever of the two was changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedarena import goals
from fedarena.board.board import Arena, Board, Cell, Honest
from fedarena.federation import integrity

CLOSE = 1e-4
"""Boards keep six decimals; a score divides what is rounded by what a federation learned, which is 0.05 and more."""


def contradictions(board: Board) -> Iterator[str]:
    """What of a board cannot be together, in words with its place, cell by cell and run by run."""
    arenas = {a.name: a for a in board.arenas}
    runs = {(h.problem, h.defense): h for h in board.honest}
    for h in board.honest:
        if why := _honest_fault(h, arenas[h.problem]):
            yield f"{h.problem} · {h.defense} · nobody poisons: {why}"
    for c in board.cells:
        if why := _cell_fault(c, arenas[c.problem], runs.get((c.problem, c.defense))):
            yield f"{c.problem} · {c.defense} · {c.attack} · {c.threat}: {why}"


def _honest_fault(h: Honest, arena: Arena) -> str:
    for seed, plain in sorted(arena.fedavg.items()):
        if h.defense == "fedavg" and abs(h.accuracy.get(seed, plain) - plain) > CLOSE:
            return f"accuracy of seed {seed} is {h.accuracy[seed]:g}, and its problem has {plain:g} (fedavg)"
        # What diverged is useless, however often it is right.
        if seed not in h.utility or (h.status in ("diverged", "mixed") and h.utility[seed] == 0):
            continue
        follows = min(1.0, max(0.0, h.accuracy[seed] / plain)) if plain > 0 else 0.0
        if abs(h.utility[seed] - follows) > CLOSE:
            return f"utility of seed {seed} is {h.utility[seed]:g}, and its accuracy gives {follows:g}"
    return ""


def _cell_fault(c: Cell, arena: Arena, run: Honest | None) -> str:
    for seed, said in sorted(c.scores.items()):
        metrics = {name: values[seed] for name, values in c.metrics.items() if seed in values}
        # Without its honest run it cannot be known what poisoning has left.
        if c.axis == "integrity" and (run is None or seed not in run.accuracy):
            continue
        try:
            if c.axis == "privacy" or run is None:
                follows = goals.find(c.goal).privacy(metrics)
            else:
                base = metrics.get("clean_success_rate", 0.0)
                given = run.accuracy[seed], arena.chance, base
                follows = integrity.score(metrics, *given, arena.fedavg.get(seed))
        except KeyError as missing:
            return f"metrics has no {missing.args[0]} of seed {seed}, from which its score follows"
        if c.axis not in follows:
            return f"score of seed {seed} is {said:g}, and its honest run learned nothing that could be lost"
        if abs(follows[c.axis] - said) > CLOSE:
            return f"score of seed {seed} is {said:g}, and its metrics give {follows[c.axis]:g}"
    return ""
