"""`bench compare` where nothing changed, and where something did: how often it finds something.

Boards are drawn at random twice from the same law, which is the worst case of no change: every random stream is another
one. What counts is whether any test of a score finds something on a whole board. Then a change is planted, in one cell
or in all cells of one defense, and what counts is whether that is found: `all` with every stream changed, `own` with
changed streams in that defense alone, `none` with the same streams, where only the planted change is there.

    python false_alarms.py                       synthetic boards
    python false_alarms.py --board FOLDER        disjoint seeds of a measured board, taken for BASE and NEW
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedarena.board.board import Board, BoardCell, BySeed, CleanRun
from fedarena.board.gate.compare import compare
from fedarena.board.gate.comparison import Comparison, Item, Rules
from fedarena.board.gate.means import CellMean
from fedarena.core.rng import Rng

Scores = npt.NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Callable[[int], Scores]]
"""(generator, cells) → the board's law: seeds → scores [cells, seeds]."""
Pairs = Callable[[int, int], Iterator[tuple[Board, Board, np.random.Generator]]]
"""(seeds, how many) → BASE and NEW, and a generator for what is planted."""

DEFENSES, ATTACKS, POISONING = 16, 25, 8
GOALS = ("reconstruction", "labels", "membership", "property")
SIZES = (0.05, 0.2, 0.5)
CHANGES = ("all", "own", "none")


def noisy(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """Heavy tails (t of 3 degrees) whose width is log-normal about 0.03."""
    mean, sd = g.uniform(0, 1, m), np.exp(g.normal(np.log(0.03), 1, m))[:, None]
    return lambda n: mean[:, None] + sd * g.standard_t(3, (m, n))


def saturated(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """As noisy, and four in ten lie at 0 or 1, partly or always."""
    mean, sd = g.uniform(-0.3, 1.3, m), np.exp(g.normal(np.log(0.05), 1, m))[:, None]
    return lambda n: mean[:, None] + sd * g.standard_t(3, (m, n))


def tenths(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """Shares of ten images; six in ten cells are all but constant at 0 or 1."""
    p = np.where(g.random(m) < 0.6, g.integers(0, 2, m), g.beta(0.5, 0.5, m)).clip(0.005, 0.995)
    return lambda n: g.binomial(10, p[:, None], (m, n)) / 10


def batches(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """Shares of ten images that are recovered together or not at all (beta-binomial)."""
    p = g.beta(0.3, 0.3, m)[:, None].clip(1e-3, 1 - 1e-3)
    return lambda n: g.binomial(10, g.beta(2 * p, 2 * (1 - p), (m, n)).clip(0, 1)) / 10


def coins(share: float, fair: bool) -> Law:
    """A share of cells is all or nothing, others are quiet."""

    def law(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
        coin, p = g.random(m) < share, np.full(m, 0.5) if fair else g.random(m)
        mean, sd = g.uniform(0, 1, m), np.exp(g.normal(np.log(0.02), 0.7, m))

        def draw(n: int) -> Scores:
            quiet = mean[:, None] + sd[:, None] * g.normal(size=(m, n))
            return np.where(coin[:, None], g.random((m, n)) < p[:, None], quiet)

        return draw

    return law


def leaping(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """Constant, but for seeds that land anywhere, which are rare in most cells and frequent in few."""
    often, usual = g.beta(0.2, 2, m), g.integers(0, 11, m) / 10
    return lambda n: np.where(g.random((m, n)) < often[:, None], g.random((m, n)), usual[:, None])


def together(g: np.random.Generator, m: int) -> Callable[[int], Scores]:
    """Cells of a defense share two thirds of their noise, as they share the training run."""
    mean, sd = g.uniform(0, 1, m), np.exp(g.normal(np.log(0.03), 1, m))[:, None]
    load = g.normal(1, 0.5, (m, 1)) * sd
    of = np.arange(m) // ATTACKS
    return lambda n: mean[:, None] + load * g.normal(size=(DEFENSES, n))[of] + 0.7 * sd * g.normal(size=(m, n))


LAWS: dict[str, Law] = {
    "noisy": noisy,
    "saturated": saturated,
    "tenths": tenths,
    "batches": batches,
    "10 % coins": coins(0.1, fair=False),
    "1 % coins": coins(0.01, fair=False),
    "1 % fair coins": coins(0.01, fair=True),
    "leaping": leaping,
    "together": together,
}


def template() -> Board:
    """A board without scores: 16 defenses, 25 attacks on each."""
    cells = []
    for d in range(DEFENSES):
        for a in range(ATTACKS):
            axis, goal = ("integrity", "") if a < POISONING else ("privacy", GOALS[a % len(GOALS)])
            cell = BoardCell(
                "synthetic", defense=f"defense{d}", attack=f"attack{a}", axis=axis, goal=goal, party="server",
                form="adaptive", knows="", status="ok", reason="", statuses={}, reading="", scores={}, metrics={},
            )  # fmt: skip
            cells.append(cell)
    honest = [
        CleanRun(
            "synthetic",
            defense=f"defense{d}",
            status="ok",
            reason="",
            accuracy={},
            utility={},
            bytes_up=0.0,
            bytes_down=0.0,
            relative_seconds=None,
            peak_bytes=0.0,
            guarantees={},
            warnings=(),
            curve=(),
            keys=(),
            command="",
        )
        for d in range(DEFENSES)
    ]
    return Board("synthetic", title="", seeds=(), problems=(), clean_runs=tuple(honest), cells=tuple(cells))


def with_scores(board: Board, cells: Scores, honest: Scores) -> Board:
    """Scores put into a template."""
    rows = [dict(enumerate(row)) for row in cells.clip(0, 1).tolist()]
    runs = [dict(enumerate(row)) for row in honest.clip(0, 1).tolist()]
    return replace(
        board,
        seeds=tuple(range(cells.shape[1])),
        cells=tuple(replace(c, scores=r) for c, r in zip(board.cells, rows, strict=True)),
        clean_runs=tuple(replace(h, utility=r) for h, r in zip(board.clean_runs, runs, strict=True)),
    )


def synthetic(law: str, k: int, draws: int) -> Iterator[tuple[Board, Board, np.random.Generator]]:
    """Pairs of boards of one law, and a generator for what is planted."""
    empty = template()
    for draw in range(draws):
        g = Rng(draw).child("false alarms", law, k).numpy()
        cells, mean = LAWS[law](g, len(empty.cells)), g.uniform(0.8, 1, (DEFENSES, 1))
        utility = [mean + 0.01 * g.normal(size=(DEFENSES, k)) for _ in range(2)]
        base, new = (with_scores(empty, cells(k), u) for u in utility)
        yield base, new, Rng(draw).child("planted", law, k).numpy()


def measured(board: Board, k: int, draws: int) -> Iterator[tuple[Board, Board, np.random.Generator]]:
    """Disjoint subsets of k seeds of a board, as BASE and NEW."""
    for draw in range(draws):
        g = Rng(draw).child("subsets", k).numpy()
        seeds = g.permutation(board.seeds)[: 2 * k].tolist()
        yield _part(board, seeds[:k]), _part(board, seeds[k:]), Rng(draw).child("planted", k).numpy()


def _part(board: Board, seeds: Sequence[int]) -> Board:
    """The board as it were with these seeds, which are called 0, 1, ..."""

    def threats(values: BySeed) -> BySeed:
        return {i: values[s] for i, s in enumerate(seeds) if s in values}

    return replace(
        board,
        seeds=tuple(range(len(seeds))),
        cells=tuple(replace(c, scores=threats(c.scores), statuses={}) for c in board.cells),
        clean_runs=tuple(
            # FedAvg's accuracy is compared as a score is; of others it is only asked whether it is FedAvg's.
            replace(h, utility=threats(h.utility), accuracy=threats(h.accuracy) if h.defense == "fedavg" else {})
            for h in board.clean_runs
        ),
    )


def plant(base: Board, new: Board, g: np.random.Generator, where: str, size: float, streams: str) -> tuple[Board, str]:
    """The new board with scores moved away from the nearer limit, and the place that was chosen.

    Args:
        where: `cell`, or `defense` for all cells of one.
        streams: whose random streams are others than the base board's: `all`, `own` (the defense's), `none`.
    """
    scored = [c for c in base.cells if c.scores]
    chosen = scored[int(g.integers(len(scored)))]
    old = {c.place: c for c in base.cells}
    cells = []
    for c in new.cells:
        mine = c.defense == chosen.defense
        if streams == "none" or (streams == "own" and not mine):
            c = replace(c, scores=old[c.place].scores)
        if c.place == chosen.place or (where == "defense" and mine):
            c = replace(c, scores=_moved(old[c.place].scores, c.scores, size, where))
        cells.append(c)
    honest = new.clean_runs if streams == "all" else base.clean_runs
    return replace(new, cells=tuple(cells), clean_runs=honest), chosen.defense if where == "defense" else str(
        chosen.place
    )


def _moved(base: BySeed, scores: BySeed, size: float, where: str) -> BySeed:
    """A defense's scores fall, where they can; a single one goes where there is room."""
    if not scores or not base:
        return scores
    down = where == "defense" or sum(base.values()) / len(base) > 0.5
    return {seed: min(1.0, max(0.0, value + (-size if down else size))) for seed, value in scores.items()}


def alarms(c: Comparison) -> list[Item]:
    """Findings of tests of scores."""
    return [i for i in c.items if i.verdict is not None and i.verdict.finding]


def caught(c: Comparison, where: str, chosen: str) -> bool:
    """Whether what was planted is found: the cell itself, or the mean or any cell of the defense."""
    for item in alarms(c):
        place = item.verdict.contrast.place if item.verdict else None
        if where == "cell" and str(place) == chosen:
            return True
        if where == "defense" and isinstance(place, CellMean) and place.of == "defense" and place.name == chosen:
            return True
        if where == "defense" and isinstance(place, tuple) and len(place) == 6 and place[1] == chosen:
            return True
    return False


@dataclass(frozen=True)
class Row:
    """How often something was found.

    Attributes:
        board: law, or the measured board's name.
        seeds: of either board.
        planted: where, how much, and whose streams changed; empty for nothing.
        draws, found: pairs of boards, and those on which it was found.
        low, high: exact 95 % interval of the rate (Clopper and Pearson).
    """

    board: str
    seeds: int
    planted: str
    draws: int
    found: int
    low: float
    high: float


def row(board: str, seeds: int, planted: str, draws: int, found: int) -> Row:
    """With its interval."""
    from scipy.stats import binomtest

    low, high = binomtest(found, draws).proportion_ci(method="exact")
    return Row(board, seeds, planted, draws, found, float(low), float(high))


def measure(
    name: str,
    pairs: Pairs,
    k: int,
    draws: int,
    plants: int,
    rules: Rules,
) -> Iterator[Row]:
    """The rate of false alarms, then what is caught of what was planted."""
    found = sum(bool(alarms(compare(base, new, rules))) for base, new, _ in pairs(k, draws))
    yield row(name, k, "", draws, found)
    if not plants:
        return
    for where in ("cell", "defense"):
        for streams in CHANGES:
            for size in SIZES:
                hits = 0
                for base, new, g in pairs(k, plants):
                    moved, chosen = plant(base, new, g, where, size, streams)
                    hits += caught(compare(base, moved, rules), where, chosen)
                yield row(name, k, f"{where}, {size:g}, streams: {streams}", plants, hits)


def main() -> int:
    """Print one row a law, number of seeds and planted change; 1 where the rate is above what is stated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", type=Path, help="folder or board.json with at least twice as many seeds")
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS), metavar="LAW")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 5], metavar="K")
    parser.add_argument("--draws", type=int, default=1000, help="pairs of boards where nothing changed")
    parser.add_argument("--plants", type=int, default=0, help="pairs of boards for each planted change")
    parser.add_argument("--false-alarm", type=float, default=0.05)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rules = Rules(false_alarm=args.false_alarm)
    sources: dict[str, Pairs]
    if args.board:
        from fedarena.board.load import load_board

        board = load_board(args.board)
        if len(board.seeds) < 2 * max(args.seeds):
            parser.error(f"{args.board} has {len(board.seeds)} seeds: at least {2 * max(args.seeds)} are needed")
        sources = {board.suite: partial(measured, board)}
    else:
        sources = {law: partial(synthetic, law) for law in args.laws}
    rows = []
    for name, pairs in sources.items():
        for k in args.seeds:
            for r in measure(name, pairs, k, args.draws, args.plants, rules):
                rows.append(r)
                if not args.json:
                    told = r.planted or "nothing"
                    rate = f"{r.found / r.draws:7.1%}  [{r.low:.1%}, {r.high:.1%}]"
                    print(f"{r.board:16} {r.seeds} seeds  {told:36} {r.found:5} of {r.draws:5} {rate}", flush=True)
    if args.json:
        print(json.dumps([asdict(r) for r in rows], indent=2))
    return int(any(not r.planted and r.low > args.false_alarm for r in rows))


if __name__ == "__main__":
    sys.exit(main())
