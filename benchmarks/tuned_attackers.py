"""What tuning gives an attacker: integrity by the default strength and the last round, and by the tuned one over time.

    FEDARENA_DATA=… python benchmarks/tuned_attackers.py [--jobs N] [--out FOLDER] [--seeds N,…]

The first table is `bank` on `two-stage`, on digits, USPS and Fashion-MNIST, ε 0.5 and 2, clients that are alike and
that differ. The second is min-max, ALIE and IPM, which see all uploads, against six rules. `before` is an attack by its
default options, judged after the last round. `after` is the attack tuned by 4 simulations on the corrupted clients' own
data, judged in the worst window of rounds. `left` is the share of the clean run's accuracy above a constant answer that
is left. `integrity` is what boards show: the share above b, which can be had without a federation. Figures are means
over seeds; the second table shows the worst seed too. Exits with 1 where tuned `bank` leaves two-stage an integrity
above 0.05.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

from fedarena.board.board import Board, BoardCell
from fedarena.board.load import load_board
from fedarena.cli import main as bench

Row = tuple[str | float, ...]

BAR = 0.05
"""The highest integrity that tuned `bank` may leave two-stage."""
TUNE = 4
EPSILONS = (0.5, 2.0)
RULES = ("krum", "median", "trimmed-mean", "geometric-median", "centered-clipping", "nnm+krum")
STRONG = ("alie", "ipm", "min-max")
CHANCE = 0.1
"""The accuracy of a constant answer; all data sets have ten classes of about one size."""

ROUNDS = {"digits": 200, "usps": 200, "fashion-mnist": 300}
PARTITIONS = {"iid": "", "dirichlet": "partition_options = { alpha = 0.5, min_size = 16 }"}

PROBLEM = """
[problems.{name}]
dataset = "{dataset}"
model = "mlp"
clients = {clients}
corrupted = {corrupted}
partition = "{partition}"
{partition_options}
model_options = {{ widths = [32] }}
training = {{ rounds = {rounds}, batch_size = 16, lr = 0.2, eval_every = {look} }}
utility = false
"""
MATRIX = """
[[matrix]]
problem = "{problem}"
defenses = {defenses}
attacks = {attacks}
knows = ["{knows}"]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="2", help="processes at once (default: 2)")
    parser.add_argument("--seeds", default="0,1,2", help="seeds (default: 0,1,2)")
    parser.add_argument("--out", type=Path, help="records go here, and are taken from here if they are there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--seeds", args.seeds, "--jobs", args.jobs]
        rows = [row for epsilon in EPSILONS for row in two_stage(folder, epsilon, flags)]
        heads = ["data", "clients", "ε", "no attack", "b", "before", "left", "after", "left", "integrity"]
        print(table(heads, rows), flush=True)
        heads = ["rule", "left before", "by", "left after", "by", "integrity", "its worst seed"]
        print("\n" + table(heads, rules(folder, flags)))
    return int(any(float(row[-1]) > BAR for row in rows))


def table(heads: Sequence[str], rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [[f"{c:.2f}" if isinstance(c, float) else c for c in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, ["---"] * len(heads), *lines))


def two_stage(folder: Path, epsilon: float, flags: Sequence[str]) -> Iterator[Row]:
    """Rows of the first table: with the default turn and with a tuned one."""
    problems = "".join(
        _problem(f"{dataset.split('-')[0]}-{partition}", dataset, partition)
        for dataset in ROUNDS
        for partition in PARTITIONS
    )
    names = [f"{dataset.split('-')[0]}-{partition}" for dataset in ROUNDS for partition in PARTITIONS]
    matrices = "".join(_matrix(name, ["two-stage"], ["bank"], "own") for name in names)
    options = f"\n[methods.two-stage]\nepsilon = {epsilon}\n"
    before, after = (
        _measure(folder, f"two-stage-{epsilon:g}-{tune}", problems, options + _tuning(["bank"], tune), matrices, flags)
        for tune in (0, TUNE)
    )
    for name in names:
        clean = next(c for c in before.clean_runs if c.problem == name and c.defense == "two-stage")
        old, new = (_cell(board, name, "two-stage", "bank") for board in (before, after))
        accuracy = fmean(clean.accuracy.values())
        last, window = _mean(old, "accuracy"), _mean(new, "window_accuracy")
        floor = fmean(max(CHANCE, alone, clean.server_only[seed]) for seed, alone in clean.local_only.items())
        data, partition = name.split("-")
        left = _left(window, _mean(new, "window_clean_accuracy"))
        yield data, partition, epsilon, accuracy, floor, last, _left(last, accuracy), window, left, _score(new)


def rules(folder: Path, flags: Sequence[str]) -> Iterator[Row]:
    """Rows of the second table: the attack that leaves least of each rule."""
    problem = _problem("digits", "digits", "similarity", "partition_options = { share = 0.4 }")
    before, after = (
        _measure(
            *(folder, f"rules-{tune}", problem, _tuning([a for a in STRONG if a != "min-max"], tune)),
            *(_matrix("digits", RULES, STRONG, "omniscient"), flags),
        )
        for tune in (0, TUNE)
    )
    for rule in RULES:
        clean = next(c for c in before.clean_runs if c.defense == rule)
        accuracy = fmean(clean.accuracy.values())
        old = {a: _left(_mean(_cell(before, "digits", rule, a), "accuracy"), accuracy) for a in STRONG}
        cells = {a: _cell(after, "digits", rule, a) for a in STRONG}
        new = {a: _left(_mean(c, "window_accuracy"), _mean(c, "window_clean_accuracy")) for a, c in cells.items()}
        first, second = min(STRONG, key=lambda a: old[a]), min(STRONG, key=lambda a: new[a])
        worst = cells[second]
        yield rule, old[first], first, new[second], second, _score(worst), min(worst.scores.values())


def _problem(name: str, dataset: str, partition: str, options: str | None = None) -> str:
    rounds = ROUNDS[dataset]
    return PROBLEM.format(
        name=name, dataset=dataset, partition=partition, clients=20, corrupted=4, rounds=rounds, look=rounds // 20,
        partition_options=PARTITIONS[partition] if options is None else options,
    )  # fmt: skip


def _matrix(problem: str, defenses: Sequence[str], attacks: Sequence[str], knows: str) -> str:
    # A list of names reads the same in TOML.
    return MATRIX.format(problem=problem, defenses=list(defenses), attacks=list(attacks), knows=knows)


def _tuning(attacks: Sequence[str], tune: int) -> str:
    return "".join(f"\n[methods.{attack}]\ntune = {tune}\n" for attack in attacks) if tune else ""


def _measure(folder: Path, name: str, problems: str, options: str, matrices: str, flags: Sequence[str]) -> Board:
    """The board of a suite. All suites share one folder of records, so that clean runs are measured once."""
    suite = folder / f"{name}.toml"
    suite.write_text(f'title = "{name}"\nabout = ""\n{problems}{options}{matrices}', encoding="utf-8")
    code = bench(["suite", "run", str(suite), "--out", str(folder / "records"), *flags])
    if code:
        sys.exit(code)
    return load_board(folder / "records")


def _cell(board: Board, problem: str, defense: str, attack: str) -> BoardCell:
    return next(c for c in board.cells if (c.problem, c.defense, c.attack) == (problem, defense, attack))


def _mean(cell: BoardCell, metric: str) -> float:
    return fmean(cell.metrics[metric].values())


def _left(attacked: float, clean: float) -> float:
    """The share of what the clean run has above a constant answer that is left."""
    return min(1.0, max(0.0, (attacked - CHANCE) / (clean - CHANCE)))


def _score(cell: BoardCell) -> float:
    return fmean(cell.scores.values())
