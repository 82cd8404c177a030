"""DBCL, Table 1, MLP rows: rounds of FedAvg to 97 % on MNIST, with and without sketching.

Paper (c = participation): MLP 222, 96, 84, 83, 82 and MLP-Sketch 572, 322, 308, 298, 287 rounds at
c = 1, 10, 20, 50, 100 %; ratio 2.6 to 3.6. Setting (Section 6.2): 784-200-200-10, 100 clients IID, one
local epoch, batch 10, s = d_in/2; the learning rate was "tuned", and is not stated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedarena import federation, registry
from fedarena.federation import Point
from fedarena.problem import ProblemSpec, build
from fedarena.rng import Rng
from fedarena.schedule import Schedule

TARGET, LIMIT = 0.97, 1000
PAPER = {0.1: {"fedavg": 96, "dbcl": 322}}
LR = {"fedavg": 0.1, "dbcl": 0.1}

SETTING = (
    "rounds until 97 % test accuracy on MNIST; MLP 784-200-200-10, 100 clients iid, 1 local epoch, batch 10, "
    f"s = d_in/2; SGD with lr {LR['fedavg']:g} (fedavg) and {LR['dbcl']:g} (dbcl), each the best of a grid"
)


def rows(data_dir: Path | None, seed: int, progress: Callable[[float, str], None]) -> list[dict[str, object]]:
    """One row for each of the two protocols, and their ratio, at c = 10 %."""
    found: list[dict[str, object]] = []
    c = 0.1
    rounds: dict[str, int | None] = {}
    for i, name in enumerate(("fedavg", "dbcl")):

        def report(share: float, i: int = i, name: str = name) -> None:
            progress((i + share) / 2, f"{name}, c = {c:.0%}")

        run = train(name, c, LR[name], seed, data_dir, report)
        reached = run.curve[-1].accuracy >= TARGET
        rounds[name] = run.curve[-1].rounds if reached else None
        plain = rounds["fedavg"]
        ratio = rounds[name] / plain if name == "dbcl" and rounds[name] and plain else None  # type: ignore[operator]
        found.append(
            {
                "model": "MLP" if name == "fedavg" else "MLP-Sketch",
                "participation": c,
                "paper_rounds": PAPER[c][name],
                "rounds": rounds[name] if reached else f"more than {LIMIT}",
                "paper_ratio": 322 / 96 if name == "dbcl" else None,
                "ratio": ratio,
                "bytes_up": run.bytes_up,
                "bytes_down": run.bytes_down,
                "accuracy": run.curve[-1].accuracy,
                "training_seconds": run.seconds,
            }
        )
    return found


def train(
    name: str, participation: float, lr: float, seed: int, data_dir: Path | None, report: Callable[[float], None]
) -> federation.Run:
    """Train until the target, or for `LIMIT` rounds."""
    schedule = Schedule(rounds=LIMIT, batch_size=10, local_epochs=1, participation=participation, lr=lr, eval_every=1)
    model = registry.find("model", "mlp").parse({"widths": "200,200"})
    partition = registry.find("partition", "iid").parse({})
    spec = ProblemSpec("mnist", "mlp", "iid", 100, model, partition, schedule)
    problem = build(spec, seed, data_dir)
    card = registry.find("defense", name)
    defense = card.load()(card.parse({}), problem.task)

    def reached(point: Point) -> bool:
        return point.accuracy >= TARGET

    return federation.run(defense, problem, Rng(seed).child("federation"), progress=report, stop=reached)
