"""Defenses that are worth nothing, on the problems of the published boards: what rank would they have?

    FEDARENA_DATA=… python benchmarks/degenerate.py [--suites NAME,…] [--defenses NAME,…] [--seeds N,…]
                                                    [--jobs N] [--out FOLDER]

The defenses are those of `tests/helpers/degenerate.py`, installed as a plug-in: a constant model, a server that ignores
its clients, one upload kept of all, noise that hides nothing, random labels, signs of gradients, public numbers added
and multiplied, four that protect some rounds and two that protect some clients, two that are silent in small
federations, two that hide what their messages tell, four whose pads or orders anybody can compute, and one that asks
for a public code. They meet FedAvg's problems of a published suite and a part of
its attacks. A worst case over fewer attacks is at least that over all, so each score here is an upper bound of the one
on the board.

A sound defense of a board is one that stands above FedAvg there: FedAvg with noise of nothing is FedAvg, and stands
where that does. Ranks are among the defenses of the table alone. The law: a degenerate defense has no rank, or its
scores from the lowest on are at most those of each sound defense. Exits with 1 where it does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fedarena.board.load import load_board
from fedarena.board.ranking import RankingRow, rank_defenses
from fedarena.cli import main as bench
from fedarena.contracts.baseline import BASELINE
from fedarena.runs.suite.suite import load

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from helpers.degenerate import CLASSES, installed  # noqa: E402

PUBLISHED = {"smoke": "baseline"}
"""Suite → the folder of its board, where that has another name."""
POISONED = {
    "smoke": ("poison",),
    "digits": ("poison",),
    "iid": ("fashion", "cifar"),
    "heterogeneous": ("fashion", "cifar"),
}
"""Published suite → its problems that count as utility and that clients poison."""
READ = {"smoke": "analytic", "digits": "analytic", "iid": "inverting-gradients", "heterogeneous": "inverting-gradients"}
"""Published suite → its attack on samples, on the problem `upload`."""
MEMBERS = {"smoke": "model", "digits": "model", "iid": "members", "heterogeneous": "members"}
"""Published suite → its problem on which all uploads of a client are read together."""
POOLED = "upload-regression"
AXES = ("utility", "integrity", "privacy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default=",".join(READ), help=f"published suites (default: {','.join(READ)})")
    parser.add_argument("--defenses", default=",".join(CLASSES), help="degenerate defenses (default: all)")
    parser.add_argument("--seeds", help="seeds (default: the suite's)")
    parser.add_argument("--jobs", default="2", help="processes at once (default: 2)")
    parser.add_argument("--out", type=Path, help="records go here")
    args = parser.parse_args()
    flags = ["--jobs", args.jobs, *(["--seeds", args.seeds] if args.seeds else [])]
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        with installed(Path(temporary) / "package"):
            for name in args.suites.split(","):
                broken += measured(name, args.defenses.split(","), folder, flags)
    for line in broken:
        print(f"does not hold: {line}")
    return 1 if broken else 0


def measured(name: str, defenses: Sequence[str], folder: Path, flags: Sequence[str]) -> list[str]:
    """Measure degenerate defenses on a suite's problems, print their table, and say where the law is broken."""
    path, out = folder / f"degenerate-{name}.toml", folder / name
    path.write_text(suite_of(name, [BASELINE, *defenses]))
    if bench(["suite", "run", str(path), "--out", str(out), "--quiet", *flags]):
        raise SystemExit(f"the suite {path} did not run")
    here = {row.defense: row for row in rank_defenses(load_board(out))}
    published = {row.defense: row for row in rank_defenses(load_board(ROOT / "reports" / PUBLISHED.get(name, name)))}
    sound = [row for row in published.values() if row.rank and levels(row) > levels(published[BASELINE])]
    print(f"\n{name}: sound are {', '.join(row.defense for row in sound) or 'none'}\n")
    print(line(["defense", *AXES, "rank"]), line(["---"] * 5), sep="\n")
    for row in (here[d] for d in (BASELINE, *defenses)):
        where = row.rank.text if row.rank else row.unranked.split(" (")[0]
        print(line([row.defense, *(f"{row.score(axis).level:.2f}" for axis in AXES), where]), flush=True)
    return [f"{name}: {d} {why}" for d in defenses for why in above(here[d], sound)]


def above(row: RankingRow, sound: Sequence[RankingRow]) -> list[str]:
    """What the degenerate defense stands above and should not."""
    if row.rank is None:
        return []
    return [f"stands above {one.defense}" for one in sound if levels(row) > levels(one)]


def levels(row: RankingRow) -> list[float]:
    """The three scores from the lowest on, to the digits that boards compare."""
    return sorted(round(row.score(axis).level, 3) for axis in AXES)


def suite_of(name: str, defenses: Sequence[str]) -> str:
    """The suite's problems and options, with other defenses in place of its own."""
    absent = rf"(?ms)^\[(methods|training)\.(?!sign-flip\]|gradient-ascent\]|{READ[name]}\]|{POOLED}\]).*?(?=^\[|\Z)"
    text = re.sub(absent, "", load(name).text.split("[[matrix]]")[0])
    for problem in POISONED[name]:
        text += matrix(problem, defenses, ["sign-flip", "gradient-ascent"])
        text += matrix(problem, defenses, ["last-layer-label"], 'parties = ["server"]')
    text += matrix("upload", defenses, [READ[name], "last-layer-label"], 'parties = ["server"]')
    return text + matrix(MEMBERS[name], defenses, [POOLED], 'parties = ["server"]')


def matrix(problem: str, defenses: Sequence[str], attacks: Sequence[str], more: str = "") -> str:
    cells = f"defenses = {json.dumps(defenses)}\nattacks = {json.dumps(attacks)}"
    return f'[[matrix]]\nproblem = "{problem}"\n{cells}\n{more}\n'


def line(parts: Sequence[str]) -> str:
    return f"| {' | '.join(parts)} |"


if __name__ == "__main__":
    sys.exit(main())
