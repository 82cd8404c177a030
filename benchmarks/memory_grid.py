"""Worst accuracy at the last round under attackers with memory, by rule, split, participation and momentum.

    bench suite run memory && python benchmarks/memory_grid.py runs/memory
    python benchmarks/memory_grid.py reports/memory/board.json --picture reports/images/memory-grid.png

Prints a table of markdown: for each setting and rule the accuracy without poisoning and the lowest of the three
attackers' (mean over seeds), with the attacker's letter. Below it, for each rule, how momentum changes that lowest
accuracy: the mean over the six settings of split and participation of (with − without), with its 95 % interval over
these settings (Student's t, paired), and in how many of them it is higher.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import fedarena as fa
from fedarena.core.text.numbers import mean

RULES = ("fedavg", "krum", "median", "trimmed-mean", "geometric-median", "centered-clipping", "nnm+krum")
LETTERS = {"bank": "b", "rop": "r", "poisoned-fl": "p"}
SPLITS, WHO, HOW = ("iid", "similar", "sorted"), ("all", "tenth"), ("plain", "momentum")
SETTINGS = [f"{split}-{who}-{how}" for split in SPLITS for who in WHO for how in HOW]

Grid = dict[tuple[str, str], tuple[float, float, str]]
"""(setting, rule) → accuracy without poisoning, lowest accuracy under attack, which attack."""


def read(where: str) -> Grid:
    """The grid of a board."""
    board = fa.load_board(where).board
    clean = {(run.problem, run.defense): fmean(run.accuracy.values()) for run in board.clean_runs if run.accuracy}
    grid: Grid = {}
    for setting in SETTINGS:
        for rule in RULES:
            found = {c.attack: fmean(c.metrics["accuracy"].values()) for c in _cells(board, setting, rule)}
            attack = min(found, key=lambda name: found[name])
            grid[setting, rule] = (clean[setting, rule], found[attack], attack)
    return grid


def _cells(board: Any, setting: str, rule: str) -> Iterator[Any]:
    yield from (c for c in board.cells if (c.problem, c.defense) == (setting, rule) and c.metrics.get("accuracy"))


def table(grid: Grid) -> str:
    """Rules in rows, settings in columns."""
    lines = ["| rule | " + " | ".join(SETTINGS) + " |", "|---|" + "---|" * len(SETTINGS)]
    for rule in RULES:
        cells = [grid[setting, rule] for setting in SETTINGS]
        texts = [f"{clean:.2f} → {worst:.2f} {LETTERS[attack]}" for clean, worst, attack in cells]
        lines.append(f"| {rule} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def momentum(grid: Grid) -> str:
    """What momentum changes, by rule."""
    lines = ["| rule | with momentum − without, lowest accuracy | higher in |", "|---|---|---|"]
    for rule in RULES:
        pairs = [[grid[f"{split}-{who}-{how}", rule][1] for how in HOW] for split in SPLITS for who in WHO]
        change = mean([with_it - without for without, with_it in pairs])
        higher = sum(with_it > without for without, with_it in pairs)
        lines.append(f"| {rule} | {change.value:+.2f} ± {change.half or 0:.2f} | {higher} of {len(pairs)} |")
    return "\n".join(lines)


def draw(grid: Grid, path: str) -> None:
    """The grid as a heat map."""
    import matplotlib.pyplot as plt

    values = [[grid[setting, rule][1] for setting in SETTINGS] for rule in RULES]
    figure, axes = plt.subplots(figsize=(11, 4.6), layout="constrained")
    picture = axes.imshow(values, vmin=0.1, vmax=0.95, cmap="viridis", aspect="auto")
    for y, rule in enumerate(RULES):
        for x, setting in enumerate(SETTINGS):
            _, worst, attack = grid[setting, rule]
            dark = worst < 0.6
            axes.text(x, y, f"{worst:.2f} {LETTERS[attack]}", ha="center", va="center", color="w" if dark else "k")
    axes.set_yticks(range(len(RULES)), RULES)
    axes.set_xticks(range(len(SETTINGS)), [s.replace("-", "\n") for s in SETTINGS])
    axes.set_title(
        "Lowest accuracy at the last round: b bank, r ROP, p PoisonedFL (digits, 20 of 100 clients corrupted)"
    )
    figure.colorbar(picture, label="accuracy")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the tables, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", help="a folder of records, or a board.json")
    parser.add_argument("--picture", metavar="FILE", help="a heat map, as .png")
    args = parser.parse_args()
    grid = read(args.board)
    print(table(grid), "", momentum(grid), sep="\n")
    if args.picture:
        draw(grid, args.picture)


if __name__ == "__main__":
    main()
