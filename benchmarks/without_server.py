"""Ten rounds of 100 nodes on a sparse graph against ten rounds of a server with 100 clients: what a model each costs.

Digits, MLPs of 64 and of 200-200 units; FedSGD with batches of 14 (all samples of a client), and one local epoch in
batches of 4. Every node has four neighbours. One model is evaluated in the end, and nothing is written down.
"""

from __future__ import annotations

from collections.abc import Callable

from side_by_side import Row, alternate, costlier, main

from fedarena.contracts.defense import Defense
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.federation import rounds
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

NODES, ROUNDS, AT_MOST = 100, 10, 1.3
CASES = (("64", 0, 14), ("64", 1, 4), ("200,200", 0, 14), ("200,200", 1, 4))


def measure(repetitions: int) -> list[Row]:
    """One row a case."""
    rows = []
    for widths, epochs, batch in CASES:
        problem = federation(widths, epochs, batch)
        candidates = {"without": run(problem, "d-sgd"), "server": run(problem, "fedavg")}
        what = f"mlp {widths}, {'FedSGD' if not epochs else f'{epochs} epoch'}, batch {batch}"
        rows.append(costlier(what, "without", "server", alternate(candidates, repetitions), at_most=AT_MOST))
    return rows


def federation(widths: str, epochs: int, batch: int) -> Problem:
    """One hundred clients with a share of the digits each."""
    schedule = Schedule(rounds=ROUNDS, local_epochs=epochs, batch_size=batch, lr=0.05, eval_every=0)
    options = registry.find("model", "mlp").parse({"widths": widths})
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=NODES, model_options=options, schedule=schedule)
    return build(spec, 0)


def run(problem: Problem, name: str) -> Callable[[], object]:
    """The training, and the evaluation of one model as with a server: that of all nodes is no part of the loop."""
    defense: Defense = make_defense(parse_defense(name), problem.task)
    defense.in_use = lambda state, corrupted=(): [defense.deployed(state)]  # type: ignore[method-assign]
    return lambda: rounds.run(defense, problem, Rng(0).child("federation"))


if __name__ == "__main__":
    main(__doc__, measure, repetitions=7)
