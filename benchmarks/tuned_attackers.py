"""What tuning gives an attacker: integrity by the default strength and the last round, and by the tuned one over time.

    FEDARENA_DATA=… python benchmarks/tuned_attackers.py [--jobs N] [--out FOLDER] [--seeds N,…]

The first table is `bank` on `two-stage`, on digits, USPS and Fashion-MNIST, ε 0.5 and 2, clients that are alike and
that differ. The second is min-max, ALIE and IPM, which see all uploads, against six rules. `before` is an attack by its
default options, judged after the last round. `after` is the attack tuned by 4 simulations on the corrupted clients' own
data, judged in the worst window of rounds. `left` is the share of the clean run's accuracy above a constant answer that
is left. `integrity` is what boards show: the share above b, which can be had without a federation. Figures are means
over seeds; the second table shows the worst seed too. Exits with 1 where tuned `bank` leaves more than 0.05 of
two-stage.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from fedarena.board.board import Board, BoardCell
from fedarena.board.load import load_board
from fedarena.cli import main as bench

Row = tuple[str | float, ...]

BAR, LEFT = 0.05, 8
"""The largest share that tuned `bank` may leave of two-stage, and the column where it stands."""
TUNE = 4
EPSILONS = (0.5, 2.0)
RULES = ("krum", "median", "trimmed-mean", "geometric-median", "centered-clipping", "nnm+krum")
STRONG = ("alie", "ipm", "min-max")
CHANCE = 0.1
"""The accuracy of a constant answer; all data sets have ten classes of about one size."""

ROUNDS = {"digits": 200, "usps": 200, "fashion-mnist": 300}
PARTITIONS = {"iid": (), "dirichlet": ("--set", "partition.alpha=0.5", "--set", "partition.min_size=16")}

SUITE = """
title = "Strong attacks on rules"

[problems.digits]        # where clients that train alone reach less
dataset = "digits"
model = "mlp"
clients = 20
corrupted = 4
partition = "similarity"
partition_options = {{ share = 0.4 }}
model_options = {{ widths = [32] }}
training = {{ rounds = 200, batch_size = 16, lr = 0.2, eval_every = 10 }}
{tuning}
[[matrix]]
problem = "digits"
defenses = {rules}
attacks = {attacks}
knows = ["omniscient"]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="2", help="processes at once (default: 2)")
    parser.add_argument("--seeds", default="0,1,2", help="seeds (default: 0,1,2)")
    parser.add_argument("--out", type=Path, help="records go here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--seeds", args.seeds, "--jobs", args.jobs]
        heads = ["data", "clients", "ε", "no attack", "b", "before", "left", "after", "left", "integrity"]
        rows = []
        print(lines(heads, ["---"] * len(heads)))
        for epsilon in EPSILONS:
            for row in two_stage(folder, epsilon, flags):
                rows.append(row)
                print(lines(row), flush=True)
        heads = ["rule", "left before", "by", "left after", "by", "integrity", "its worst seed"]
        print("\n" + lines(heads, ["---"] * len(heads), *rules(folder, flags)))
    return int(any(float(row[LEFT]) > BAR for row in rows))


def lines(*rows: Sequence[float | str]) -> str:
    """Lines of a Markdown table."""
    texts = [[f"{c:.2f}" if isinstance(c, float) else c for c in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in texts)


def two_stage(folder: Path, epsilon: float, flags: Sequence[str]) -> Iterator[Row]:
    """Rows of the first table: with the default turn and with a tuned one."""
    for dataset, rounds in ROUNDS.items():
        for partition, options in PARTITIONS.items():
            command = (
                f"run --defense two-stage --attack bank --knows own --dataset {dataset} --model mlp "
                f"--partition {partition} --clients 20 --corrupted 4 --rounds {rounds} --batch-size 16 --quiet "
                f"--set training.lr=0.2 --set training.eval_every={rounds // 20} --set model.widths=32 "
                f"--set defense.epsilon={epsilon:g}"
            )
            before, after = (
                _measured(
                    [*command.split(), *options, "--set", f"attack.tune={tune}", *flags],
                    folder / f"{dataset}-{partition}-{epsilon:g}-{tune}",
                )
                for tune in (0, TUNE)
            )
            clean = next(c for c in before.clean_runs if c.defense == "two-stage")
            old, new = (_cell(board, "two-stage", "bank") for board in (before, after))
            accuracy = fmean(clean.accuracy.values())
            last, window = _mean(old, "accuracy"), _mean(new, "window_accuracy")
            floor = fmean(max(CHANCE, alone, clean.server_only[seed]) for seed, alone in clean.local_only.items())
            left = _left(window, _mean(new, "window_clean_accuracy"))
            yield dataset, partition, epsilon, accuracy, floor, last, _left(last, accuracy), window, left, _score(new)


def rules(folder: Path, flags: Sequence[str]) -> Iterator[Row]:
    """Rows of the second table: the attack that leaves least of each rule."""
    boards = []
    for tune in (0, TUNE):
        suite = folder / f"rules-{tune}.toml"
        tuning = "".join(f"\n[methods.{name}]\ntune = {tune}\n" for name in ("alie", "ipm")) if tune else ""
        # A list of names reads the same in TOML.
        text = SUITE.format(tuning=tuning, rules=list(RULES), attacks=list(STRONG))
        suite.write_text(text, encoding="utf-8")
        boards.append(_measured(["suite", "run", str(suite), *flags], folder / "rules"))
    before, after = boards
    for rule in RULES:
        clean = next(c for c in before.clean_runs if c.defense == rule)
        accuracy = fmean(clean.accuracy.values())
        old = {a: _left(_mean(_cell(before, rule, a), "accuracy"), accuracy) for a in STRONG}
        cells = {a: _cell(after, rule, a) for a in STRONG}
        new = {a: _left(_mean(c, "window_accuracy"), _mean(c, "window_clean_accuracy")) for a, c in cells.items()}
        first, second = min(STRONG, key=lambda a: old[a]), min(STRONG, key=lambda a: new[a])
        worst = cells[second]
        lowest = min(worst.scores.values()) if worst.scores else "n/a"
        yield rule, old[first], first, new[second], second, _score(worst), lowest


def _measured(command: Sequence[str], out: Path) -> Board:
    """The board of a folder after a command has written its records there."""
    with contextlib.redirect_stdout(sys.stderr):
        code = bench([*command, "--out", str(out)])
    if code:
        sys.exit(code)
    return load_board(out)


def _cell(board: Board, defense: str, attack: str) -> BoardCell:
    return next(c for c in board.cells if (c.defense, c.attack) == (defense, attack))


def _mean(cell: BoardCell, metric: str) -> float:
    return fmean(cell.metrics[metric].values())


def _left(attacked: float, clean: float) -> float:
    """The share of what the clean run has above a constant answer that is left."""
    return min(1.0, max(0.0, (attacked - CHANCE) / (clean - CHANCE)))


def _score(cell: BoardCell) -> float | str:
    """The mean integrity; n/a where there is none, since neither the defense nor FedAvg gains anything over b."""
    return fmean(cell.scores.values()) if cell.scores else "n/a"


if __name__ == "__main__":
    sys.exit(main())
