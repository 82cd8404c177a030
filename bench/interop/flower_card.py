"""The card of a Flower strategy, from the name of the defense: `flower:PATH.OF.CLASS`.

Flower is imported, and nothing of it is copied (https://flower.ai, Apache-2.0 licence).
"""

from __future__ import annotations

from fedarena.core.card import Card, import_target
from fedarena.core.errors import UserError
from fedarena.core.registry import Held
from fedarena.interop.constructor_options import options_class
from fedarena.interop.library import origin_of, release, release_number


def strategy_of(name: str) -> Held:
    """The defense with a name such as flower:flwr.server.strategy.Krum. Raises UserError."""
    installed = release("flwr", "flower", f"defense {name}")
    module, dot, attribute = name.partition(":")[2].rpartition(".")
    if not dot:
        raise UserError(f"defense {name!r} is no path of a class, allowed: flower:MODULE.CLASS")
    source = import_target(f"{module}:{attribute}", f"defense {name!r}")
    from fedarena.interop import flower_strategy

    if not flower_strategy.is_strategy(source):
        raise UserError(f"defense {name!r} is no strategy, allowed: a subclass of flwr.server.strategy.Strategy")
    fields = {"kind": "defense", "name": name, "source": source}
    card = Card(
        name=name,
        kind="defense",
        title=f"The Flower strategy {attribute}",
        target=type(attribute, (flower_strategy.FlowerStrategy,), fields),
        options=options_class(source, "defense", name, left_out=flower_strategy.IDLE),
        version=release_number(installed),
        url="https://flower.ai/docs/framework",
        departures=("The harness samples the clients and evaluates, so the strategy's options for that are left out.",),
        facts=(
            ("down", "W"),
            ("up", "∂L/∂W (FedSGD) or W − W_local (FedAvg), from which the server makes each client's model"),
            ("server knows", "W, every upload"),
            ("eavesdropper knows", "both wires, which is all that the server knows"),
        ),
    )
    origin = f"flwr {installed}" if module.partition(".")[0] == "flwr" else f"{origin_of(module)} on flwr {installed}"
    return Held(name, f"{module}:{attribute}", origin, card)
