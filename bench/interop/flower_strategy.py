"""A Flower strategy as a defense: `flower:flwr.server.strategy.Krum`, or any other class path.

    model of client c   W − η·(up_c + λ·W), with up_c the upload of FedAvg's client, η the server's learning rate and
                        λ the weight decay of FedSGD
    server              W ← strategy.aggregate_fit(round, [(client c, its model, N_c), …], failures=[])

The harness samples the clients, sends them W and evaluates. `configure_fit` is called with the round's clients, since
some strategies remember what it was given. A strategy that tells clients more than the model is refused.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg as FlowerFedAvg
from flwr.server.strategy import Strategy
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.core.errors import UserError, describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.interop.constructor_options import chosen, parameters_of
from fedarena.interop.library import FromLibrary
from fedarena.problem.task import Task

Arrays = list[np.ndarray[Any, Any]]
Kept = Literal["mean", "one", ""]
"""What a server takes of the models of a round: their mean, one of them, or something else."""
MEMORY = "strategy"
"""The name of the pickled strategy among what the server keeps between rounds."""
IDLE = parameters_of(FlowerFedAvg)
"""Parameters of Flower's base strategy. They say who is sampled and what is measured, which the harness decides."""


class FlowerStrategy(FromLibrary, FedAvg):
    """FedAvg's clients, and a server that does what the strategy does."""

    sums = False

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if rule is not None:
            raise UserError(f"option 'defense' is {self.name} and a rule, allowed: the strategy alone: it aggregates")
        if task.schedule.server_optimizer != "sgd":
            raise UserError(
                f"option 'server_optimizer' is {task.schedule.server_optimizer}, allowed with {self.name}: sgd, "
                "because the strategy makes the new model"
            )
        self._takes = self._tried()

    @property
    def takes_mean(self) -> bool:
        return self._takes == "mean"

    @property
    def picks(self) -> bool:
        return self._takes == "one"

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        new = self._played(state, ups, cohort)
        return Direction(self.direction_between(state.params, new.params), new.extra, new.verdict)

    def aggregate(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> State:
        return replace(self._played(state, ups, cohort), round=state.round + 1, steps=state.steps + 1)

    def _played(self, state: State, ups: Tensors, cohort: Cohort) -> State:
        """The state with the strategy's new model, its memory, and the weight of each upload, where that is known."""
        decay, eta = self.task.schedule.server_decay, self.step_size
        models = {name: w - eta * (ups[name] + decay * w) for name, w in state.params.items()}
        before = [w.detach().cpu().numpy() for w in state.params.values()]
        rows = [t.detach().cpu().numpy() for t in models.values()]
        results = [
            Result(client, int(n), [layer[i] for layer in rows])
            for i, (client, n) in enumerate(zip(cohort.clients, cohort.weights.tolist(), strict=True))
        ]
        memory = state.extra.get(MEMORY)
        strategy = self._made(before) if memory is None else pickle.loads(memory.detach().cpu().numpy().tobytes())
        after = play(strategy, state.round + 1, before, results)
        made = {
            name: torch.from_numpy(a.copy()).to(w) for (name, w), a in zip(state.params.items(), after, strict=True)
        }
        same = torch.stack([(t == made[name]).reshape(len(t), -1).all(1) for name, t in models.items()]).all(0)
        used = cohort.weights if self.takes_mean else _first(same) if same.any() else None
        kept = torch.frombuffer(bytearray(pickle.dumps(strategy)), dtype=torch.uint8)
        return replace(state, params=made, extra={MEMORY: kept}, verdict={} if used is None else {"used": used})

    def _made(self, initial: Arrays) -> Strategy:
        """The strategy before the first round. Raises UserError for options that its constructor refuses."""
        named, given = parameters_of(self.source), chosen(self.options, f"defense {self.name}")
        if "initial_parameters" in named:
            given["initial_parameters"] = ndarrays_to_parameters(initial)
        if "fit_metrics_aggregation_fn" in named:
            given["fit_metrics_aggregation_fn"] = no_metrics
        try:
            strategy = self.source(**given)
            pickle.dumps(strategy)
        except Exception as error:  # foreign code may fail in any way
            raise UserError(f"defense {self.name}: {describe(error)}") from None
        return strategy

    def _tried(self) -> Kept:
        """What it takes of made-up models: small ones, or where it fails on these, models of the task's shapes.

        Raises UserError where it fails on both.
        """
        try:
            return self._takes_of([(8,), (2, 3)])
        except UserError:
            raise
        except Exception:
            try:
                return self._takes_of([tuple(p.shape) for p in self.task.model.parameters()])
            except Exception as error:
                raise UserError(f"defense {self.name} fails on made-up models: {describe(error)}") from None

    def _takes_of(self, shapes: Sequence[tuple[int, ...]]) -> Kept:
        """What it takes of models of these shapes, in two rounds."""
        rng, n = np.random.default_rng(0), self.task.participants
        before = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        strategy, kinds = self._made(before), set[Kept]()
        for t in (1, 2):
            layers = [rng.normal(size=(n, *shape)).astype(np.float32) for shape in shapes]
            for layer in layers:
                layer[0] *= 1000  # what no robust rule averages
            results = [Result(c, self.task.sizes[c], [x[c] for x in layers]) for c in range(n)]
            before = play(strategy, t, before, results)
            kinds.add(_kind(before, layers, self.task.sizes[:n]))
        return kinds.pop() if len(kinds) == 1 else ""


@dataclass(frozen=True)
class Result:
    """What a client sends: its number, how many samples it holds, and its model."""

    client: int
    samples: int
    model: Arrays


def play(strategy: Strategy, server_round: int, before: Arrays, results: Sequence[Result]) -> Arrays:
    """One round of a strategy: the model after it, which is `before` where the strategy gives none.

    Raises ValueError for a strategy that tells clients more than the model, or makes a model of other shapes.
    """
    clients, parameters = Everyone(), ndarrays_to_parameters(before)
    fitted = []
    for one in results:
        sender = Sender(str(one.client))
        clients.register(sender)
        status = Status(code=Code.OK, message="")
        fitted.append((sender, FitRes(status, ndarrays_to_parameters(one.model), one.samples, metrics={})))
    for _, told in strategy.configure_fit(server_round, parameters, clients):
        if told.config or told.parameters.tensors != parameters.tensors:
            also = f"the settings {told.config}" if told.config else "another model"
            raise ValueError(f"the strategy sends {also}, but clients here get the server's model and no more")
    with np.errstate(over="ignore", invalid="ignore"):  # poisoned models may grow without bound
        made, _ = strategy.aggregate_fit(server_round, fitted, [])
    after = before if made is None else list(parameters_to_ndarrays(made))
    if (given := [w.shape for w in after]) != (wanted := [w.shape for w in before]):
        raise ValueError(f"the strategy makes a model of the shapes {given}, where clients have {wanted}")
    return after


class Everyone(SimpleClientManager):  # type: ignore[misc]  # flwr is optional, so its types are not read
    """A client manager of the clients that the harness has sampled: whoever samples again gets them all."""

    def sample(self, num_clients: int, min_num_clients: int | None = None, criterion: Any = None) -> list[ClientProxy]:
        return list(self.clients.values())


class Sender(ClientProxy):  # type: ignore[misc]
    """A client that has sent its model, and answers nothing else."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UserError(f"a strategy asks client {self.cid} directly, but clients send one model a round and no more")

    get_properties = get_parameters = fit = evaluate = reconnect = _refuse


def no_metrics(results: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """The metrics of a round, of which the clients here send none."""
    return {}


def _kind(made: Arrays, layers: Arrays, weights: Sequence[int]) -> Kept:
    """What was taken of models whose layers are stacked [n, …]."""
    means = [np.average(x, axis=0, weights=weights) for x in layers]
    if all(np.allclose(w, mean, rtol=1e-4) for w, mean in zip(made, means, strict=True)):
        return "mean"
    same = [(x == w).reshape(len(x), -1).all(axis=1) for w, x in zip(made, layers, strict=True)]
    return "one" if np.all(same, axis=0).any() else ""


def _first(same: Tensor) -> Tensor:
    """[n] of truths → 1 for the first that is true, and 0 for the others."""
    return torch.zeros(len(same), device=same.device).index_fill_(0, same.int().argmax(), 1.0)


def is_strategy(found: Any) -> bool:
    """Whether an object is a class of strategies that can be made."""
    return inspect.isclass(found) and issubclass(found, Strategy) and not inspect.isabstract(found)
