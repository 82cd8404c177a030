"""Memory of a client's round: BAFFLE's, with perturbations drawn anew from a seed, and FedAvg's, by backpropagation.

Counted as every run counts a client's peak (`fedarena.federation.client_memory`), in tensors; so nothing here depends
on the machine. The bars: nothing grows with K but the K results, which are copied a few times (16 bytes a difference),
and the server's estimate holds no more than a chunk of directions. `kept` is what K perturbations take that are not
drawn anew, 4·K·n bytes. `least` is the smallest `--client-memory` that the model allows.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass, replace

import torch
from side_by_side import machine

from fedarena.contracts.defense import Defense, State
from fedarena.core.errors import UserError
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.defenses.baffle.directions import CHUNK_BYTES, stein
from fedarena.federation.client_memory import client_peak
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

CASES = (
    ("lenet-baffle", {}, (3, 32, 32), 32),
    ("wrn-10-2", {}, (3, 32, 32), 32),
    ("lenet-dlg", {}, (1, 8, 8), 4),
    ("mlp", {"widths": "32"}, (1, 28, 28), 32),
)
"""Model, its options, shape of an image, samples."""
FEW, MANY = 10, 500
RESULTS = 16
"""Bytes a difference that a step may take."""


@dataclass(frozen=True)
class Row:
    """Bytes of one model.

    Attributes:
        work: model and batch. backprop: FedAvg's client. few, many: BAFFLE's client at K = FEW and MANY.
        least: the smallest `--client-memory`. kept: MANY perturbations. met: whether `many` grows by results alone.
    """

    work: str
    backprop: int
    few: int
    many: int
    least: int
    kept: int
    met: bool


def round_of(defense: Defense, state: State, batch: Batch) -> int:
    """The peak of one client's first round."""
    sent = defense.broadcast(state, Rng(0))
    return client_peak(defense, sent.down, batch, {}, defense.draw(Rng(1)))


def measure(model: str, options: dict[str, str], shape: tuple[int, ...], samples: int) -> Row:
    """One model's row, at random images and initial parameters."""
    card, g = find("model", model), Rng(0).torch()
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, 10)
    state = State(architecture.init(module, g))
    task = Task(module, input_shape=shape, n_classes=10, sizes=(samples,), schedule=Schedule(batch_size=samples))
    batch = Batch(torch.rand(1, samples, *shape, generator=g), torch.randint(0, 10, (1, samples), generator=g))

    def baffle(k: int, task: Task = task) -> Defense:
        return make_defense(parse_defense("baffle", {"directions": str(k)}), task)

    few, many = (round_of(baffle(k), state, batch) for k in (FEW, MANY))
    try:
        baffle(MANY, replace(task, schedule=replace(task.schedule, client_memory=1e-9)))
        raise AssertionError("a limit of nothing is refused")
    except UserError as error:
        found = re.search(r"at least ([\d.]+)", str(error))
    assert found is not None
    n = sum(p.numel() for p in state.params.values())
    return Row(
        f"{model}, n = {n:,}, batch {samples}",
        round_of(make_defense(parse_defense("fedavg"), task), state, batch),
        *(few, many, round(float(found[1]) * 1e6), 4 * MANY * n),
        many - few <= RESULTS * (MANY - FEW),
    )


def server() -> tuple[int, int]:
    """Peak of the server's estimate, n = 26,730, at K = FEW and MANY."""
    few, many = (peak_bytes(lambda k=k: stein(1, 26_730, torch.ones(k), 1e-4))[1] for k in (FEW, MANY))
    return few, many


def main() -> None:
    """Measure and print; exits with 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows, (few, many) = [measure(*case) for case in CASES], server()
    limit = CHUNK_BYTES + 3 * 4 * 26_730 + RESULTS * MANY
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows], "server": [few, many]}, indent=2))
    else:
        print(f"| kB | backpropagation | BAFFLE, K = {FEW} | K = {MANY} | least | {MANY} kept | |")
        print("|---|---|---|---|---|---|---|")
        for r in rows:
            values = (f"{b / 1e3:,.1f}" for b in (r.backprop, r.few, r.many, r.least, r.kept))
            print(f"| {r.work} | {' | '.join(values)} | {'met' if r.met else 'MISSED'} |")
        print(f"\nThe server's estimate: {few / 1e3:,.1f} and {many / 1e3:,.1f} kB, bar {limit / 1e3:,.1f}")
    sys.exit(0 if all(r.met for r in rows) and many <= limit else 1)


if __name__ == "__main__":
    main()
