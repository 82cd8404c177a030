"""Ten rounds of 100 nodes on a sparse graph against ten rounds of a server with 100 clients: what a model each costs.

Digits, MLPs of 64 and of 200-200 units and a small CNN; FedSGD with batches of 14 (all samples of a client), and one
local epoch in batches of 4. Every node has four neighbours. One model is evaluated in the end, and nothing is written
down.

The last rows have no bar. In rows `evaluated` the models of all nodes are, once, as at each evaluation of a run. The
last one says what one step at own models costs with PyTorch's products, for 200-200 units: the loop of the server
without its mean of the uploads, with every node's own weights in the products that clients of a server share, and with
one weighted sum of five models for each node. The step is not added, and no mean model is made.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from side_by_side import Row, alternate, costlier, main

from fedarena.contracts.defense import Defense
from fedarena.contracts.peers import Peers, mixed_plainly
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.federation import rounds
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

Model = tuple[str, dict[str, str]]
"""A model's name and options."""
NODES, ROUNDS, AT_MOST = 100, 10, 1.3
NARROW, WIDE, CNN = ("mlp", {"widths": "64"}), ("mlp", {"widths": "200,200"}), ("cnn", dict[str, str]())
CASES: tuple[tuple[Model, int, int], ...] = tuple(
    (model, epochs, batch) for model in (NARROW, WIDE, CNN) for epochs, batch in ((0, 14), (1, 4))
)


def measure(repetitions: int) -> list[Row]:
    """One row a case."""
    rows = []
    for model, epochs, batch in CASES:
        problem = federation(model, epochs, batch)
        candidates = {"without": run(problem, "d-sgd"), "server": run(problem, "fedavg")}
        what = f"{' '.join((model[0], *model[1].values()))}, {'1 epoch' if epochs else 'FedSGD'}, batch {batch}"
        rows.append(costlier(what, "without", "server", alternate(candidates, repetitions), at_most=AT_MOST))
    for model in (NARROW, WIDE):
        problem = federation(model, 0, 14)
        candidates = {"without": run(problem, "d-sgd", evaluated=True), "server": run(problem, "fedavg")}
        what = f"{' '.join((model[0], *model[1].values()))}, FedSGD, batch 14, evaluated"
        rows.append(costlier(what, "without", "server", alternate(candidates, repetitions)))
    return [*rows, least(repetitions)]


def least(repetitions: int) -> Row:
    """The server's loop with products at own models and one mixing in place of shared products and the mean."""
    batch = 14
    problem = federation(WIDE, 0, batch)
    defense = make_defense(parse_defense("d-sgd"), problem.task)
    assert isinstance(defense, Peers)
    peers, one = defense, problem.init
    own = {name: p.expand(NODES, *p.shape).clone() for name, p in one.items()}

    candidates = {
        "server": run(problem, "fedavg"),
        "shared": lambda: [products(one, batch) for _ in range(ROUNDS)],
        "own": lambda: [products(own, batch) for _ in range(ROUNDS)],
        "mixed": lambda: [mixed_plainly(peers, own) for _ in range(ROUNDS)],
        "mean": lambda: [{name: p.mean(0) for name, p in own.items()} for _ in range(ROUNDS)],
    }
    spent = {name: median(seconds) * 1e3 for name, seconds in alternate(candidates, repetitions).items()}
    floor = spent["server"] - spent["mean"] - spent["shared"] + spent["own"] + spent["mixed"]
    what = f"mlp 200,200, FedSGD, batch {batch}: own products, one mixing"
    return Row(what, "own products", "server", floor, spent["server"], floor / spent["server"], "", None)


def products(params: Tensors, batch: int) -> list[torch.Tensor]:
    """z = h Wᵀ of all weights and ∂L/∂h = q W of all but the first, for a batch of every node.

    A weight may be one for all, or stacked.
    """
    made = []
    for layer, weight in enumerate(p for name, p in params.items() if name.endswith("weight")):
        out, into = weight.shape[-2:]
        made.append(torch.ones(NODES, batch, into) @ weight.mT)
        if layer:
            made.append(torch.ones(NODES, batch, out) @ weight)
    return made


def federation(model: Model, epochs: int, batch: int) -> Problem:
    """One hundred clients with a share of the digits each."""
    schedule = Schedule(rounds=ROUNDS, local_epochs=epochs, batch_size=batch, lr=0.05, eval_every=0)
    name, given = model
    options = registry.find("model", name).parse(given)
    spec = ProblemSpec("digits", model=name, partition="iid", clients=NODES, model_options=options, schedule=schedule)
    return build(spec, 0)


def run(problem: Problem, name: str, evaluated: bool = False) -> Callable[[], object]:
    """The training, and the evaluation of one model as with a server, or of the models of all nodes."""
    defense: Defense = make_defense(parse_defense(name), problem.task)
    if not evaluated:
        defense.in_use = lambda state, corrupted=(): [defense.deployed(state)]  # type: ignore[method-assign]
    return lambda: rounds.run(defense, problem, Rng(0).child("federation"))


if __name__ == "__main__":
    main(__doc__, measure, repetitions=7)
