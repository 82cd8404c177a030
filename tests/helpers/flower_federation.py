"""A small Flower federation, of which two clients flip what they send: `python -m helpers.flower_federation RULE F`.

Client i moves half of the way from the model to a point of its own. The model after the last round is printed as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

CLIENTS, ROUNDS, CORRUPTED, SCALE = 6, 3, (0, 3), 5.0
FEDERATION = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2, "log_to_driver": False}}


def start() -> list[np.ndarray[Any, Any]]:
    """The model before the first round, of two tensors."""
    return [np.zeros((2, 2), dtype=np.float32), np.ones(3, dtype=np.float32)]


def trained(model: list[np.ndarray[Any, Any]], client: int) -> list[np.ndarray[Any, Any]]:
    """What an honest client makes of a model."""
    points = [np.random.default_rng((client, i)).normal(size=w.shape).astype(w.dtype) for i, w in enumerate(model)]
    return [w + (p - w) / 2 for w, p in zip(model, points, strict=True)]


def main(rule: str, f: int) -> None:
    from flwr.client import NumPyClient
    from flwr.clientapp import ClientApp
    from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.simulation import run_simulation

    from fedarena.interop.flower import RuleStrategy, poison_mod

    models: list[Any] = []

    class Client(NumPyClient):  # type: ignore[misc]
        def __init__(self, number: int) -> None:
            self.number = number

        def fit(self, parameters: Any, config: Any) -> Any:
            return trained(parameters, self.number), 10, {}

    class Written(RuleStrategy):
        def aggregate_fit(self, *round: Any) -> Any:
            made = super().aggregate_fit(*round)
            models.append(parameters_to_ndarrays(made[0]))
            return made

    def client(context: Any) -> Any:
        return Client(int(context.node_config["partition-id"])).to_client()

    def server(context: Any) -> Any:
        initial = ndarrays_to_parameters(start())
        strategy = Written(rule, f, initial_parameters=initial, fraction_evaluate=0.0, min_available_clients=CLIENTS)
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))

    clients = ClientApp(client, mods=[poison_mod("sign-flip", corrupted=CORRUPTED, scale=SCALE)])
    run_simulation(ServerApp(server_fn=server), clients, num_supernodes=CLIENTS, backend_config=FEDERATION)
    assert len(models) == ROUNDS
    print(json.dumps([w.tolist() for w in models[-1]]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
