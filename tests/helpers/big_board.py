"""A larger board made by hand, with everything that a page must cope with: hostile text, n/a, failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedarena.board.board import Board, BoardCell
from fedarena.core.threat import EVERYONE, FORMS
from helpers.board import make_board, make_cell, make_clean_run, make_problem

HOSTILE = '</script><img src=x onerror="window.pwned=1">'
"""A name that would run, were it not escaped."""

PRIVACY = (("dlg", "reconstruction"), ("joint-membership", "membership"), ("model-inversion", "inversion"))
POISON = ("sign-flip", "alie", "label-flip")
DEFENSES = ("fedavg", "twin", "dbcl", "two-stage", "baffle", "krum", "median", HOSTILE)


def big_board(
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4), problems: tuple[str, ...] = ("digits", "fashion"), odd: bool = False
) -> Board:
    """Scores drawn at random, in steps as shares of images come in; the same at every call."""
    draw = np.random.default_rng(7)
    cells: list[BoardCell] = []
    honest = []
    for problem in problems:
        for d, defense in enumerate(n for n in DEFENSES if n != "twin"):
            level = float(np.round(1 - 0.05 * d * draw.random(), 3))
            utility = {s: min(1.0, level + 0.01 * draw.standard_normal()) for s in seeds}
            honest.append(
                make_clean_run(
                    defense,
                    seeds,
                    problem=problem,
                    utility=utility,
                    bytes_up=4000.0 * (1 + 0.1 * d),
                    relative_seconds=1 + 0.3 * d,
                    guarantees={"epsilon": 8.0} if defense == "two-stage" else {},
                    warnings=("simulated: secure sums are added in the clear",) if defense == "baffle" else (),
                )
            )
            cells += [_poison(draw, problem, defense, a, k, seeds, d) for a in POISON for k in ("own", "omniscient")]
            for attack, goal in PRIVACY:
                parties = ("outsider",) if goal == "inversion" else [p for p in EVERYONE if p != "outsider"]
                cells += [_curious(draw, problem, defense, (attack, goal), p, f, seeds) for p in parties for f in FORMS]
    # One that ties with dbcl, comes first and costs more; and an honest run of which nothing is there.
    twins = [replace(c, defense="twin") for c in cells if c.defense == "dbcl"]
    calm = [replace(h, defense="twin", bytes_up=9e4) for h in honest if h.defense == "dbcl"]
    gone = next(i for i, h in enumerate(honest) if (h.problem, h.defense) == (problems[-1], "median"))
    honest[gone] = replace(honest[gone], status="missing", utility={}, accuracy={}, keys=(), bytes_up=9e6)
    honest, cells = [honest[0], *calm, *honest[1:]], [*twins, *cells]
    # What stands beside the score, and what somebody found against one defense alone.
    cells.append(make_cell("dbcl", "model-extraction", 0.0, seeds, goal="extraction", counts=False))
    lost = "recovered gradients lost up to 5.6 of their decimal digits"  # in that run alone
    cells.append(make_cell("two-stage", "sharper", 0.05, seeds, found_by="A. Reader", warnings=(lost,)))
    arenas = [
        make_problem(name=p, dataset=p, subset="100 of 60000 images" if p == "fashion" else None) for p in problems
    ]
    # A problem that is there for an attack's sake: accuracy on it is no utility.
    if odd:
        few = ("fedavg", "dbcl", "median")
        honest += [make_clean_run(d, seeds, problem="odd", level=0.3) for d in few]
        cells += [make_cell(d, "dlg", 0.4, seeds, problem="odd", party="server") for d in few]
        arenas.append(make_problem(name="odd", utility=False))
    note = f"1 damaged record left out: {HOSTILE}"
    return make_board(cells, honest, seeds=seeds, problems=tuple(arenas), notes=(note,), suite="play")


def with_exclusions(board: Board) -> Board:
    """With cells that do not count: all inference on one defense, and one attack on another."""
    why = "uninformative: the model that is attacked reaches .12, and a constant answer .10"
    untuned = "untuned: the attack took its z as given (tune=N lets it choose)"

    def excluded(c: BoardCell) -> BoardCell:
        if c.counts and c.defense == "krum" and c.axis == "privacy":
            return replace(c, counts=False, excluded=why)
        if c.counts and (c.defense, c.attack) == ("baffle", "alie"):
            return replace(c, counts=False, excluded=untuned)
        return c

    return replace(board, cells=tuple(map(excluded, board.cells)))


def _poison(
    draw: np.random.Generator, problem: str, defense: str, attack: str, knows: str, seeds: tuple[int, ...], d: int
) -> BoardCell:
    base = 0.2 + 0.1 * d * draw.random()
    scores = [float(np.clip(base + 0.05 * draw.standard_normal(), 0, 1)) for _ in seeds]
    changes = {"problem": problem, "axis": "integrity", "knows": knows, "seeds": seeds}
    if defense == "median" and attack == "alie":
        return make_cell(defense, attack, scores, status="failed", reason=f"ValueError: {HOSTILE}", **changes)
    return make_cell(defense, attack, scores, **changes)


def _curious(
    draw: np.random.Generator,
    problem: str,
    defense: str,
    attack: tuple[str, str],
    party: str,
    form: str,
    seeds: tuple[int, ...],
) -> BoardCell:
    name, goal = attack
    changes = {"problem": problem, "goal": goal, "party": party, "form": form, "seeds": seeds}
    if party == "client":
        why = "a client sees no other client's upload, so there is nothing to match"
        return make_cell(defense, name, 1.0, status="n/a", reason=why, **changes)
    scores = [float(draw.integers(0, 17)) / 16 for _ in seeds]
    if goal == "membership":
        auc = {s: 1 - v / 2 for s, v in zip(seeds, scores, strict=True)}
        changes["metrics"] = {"auc": auc, "advantage": {s: 2 * v - 1 for s, v in auc.items()}}
        changes["series"] = {"roc": [[0.0, 0.0], [0.01, 0.2], [0.1, 0.5], [0.5, 0.9], [1.0, 1.0]]}
        changes["reading"], changes["other_readings"] = "sum of two rounds", {"one round": 0.9}
    return make_cell(defense, name, scores, **changes)
