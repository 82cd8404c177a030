"""The specification of a problem as plain data, and the default problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions, as_recorded, check_options, parse_options
from fedarena.problem.schedule import Schedule

CORRUPTED_DATA = ("shard", "resampled")
MOST_CLIENTS = 1_000_000
"""More clients than any data set of this package has samples."""


@dataclass(frozen=True)
class ProblemSpec:
    """The specification of a problem. All of it is part of a record's key.

    Attributes:
        dataset, model, partition: registry names.
        clients: number of clients, corrupted ones included.
        model_options, partition_options: options objects of the model's and the partition's card.
        schedule: the training schedule.
        corrupted: how many of the clients are corrupted when the federation is attacked.
        corrupted_data: where their data come from. `shard`: the training set is shared out among all clients.
            `resampled`: it is shared out among the honest clients only, and each corrupted client holds a shard of
            another partition of the same set. Honest data then do not shrink when more clients are corrupted.
        assumed_corrupted: how many of all clients the server assumes to be corrupted; None: as many as there are, or
            a fifth of all clients where `corrupted` is 0.
    """

    dataset: str
    model: str
    partition: str
    clients: int
    model_options: Any = field(default_factory=NoOptions)
    partition_options: Any = field(default_factory=NoOptions)
    schedule: Schedule = field(default_factory=Schedule)
    corrupted: int = 0
    corrupted_data: str = "shard"
    assumed_corrupted: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError for impossible numbers of clients."""
        if not 1 <= self.clients <= MOST_CLIENTS:
            raise UserError(f"option 'clients' is {self.clients}, allowed: 1 to {MOST_CLIENTS}")
        if not 0 <= self.corrupted < self.clients:
            raise UserError(
                f"option 'corrupted' is {self.corrupted}, allowed: 0 to {self.clients - 1}, because at least one of "
                f"the {self.clients} clients is honest"
            )
        if self.assumed_corrupted is not None and not 0 <= self.assumed_corrupted < self.clients:
            raise UserError(f"option 'assumed-corrupted' is {self.assumed_corrupted}, allowed: 0 to {self.clients - 1}")
        if self.corrupted_data not in CORRUPTED_DATA:
            raise UserError(f"option 'corrupted-data' is {self.corrupted_data!r}, allowed: {', '.join(CORRUPTED_DATA)}")

    @property
    def assumed_corrupted_or_default(self) -> int:
        """How many of all clients the server assumes to be corrupted."""
        return self.assumed_corrupted if self.assumed_corrupted is not None else self.corrupted or self.clients // 5

    def cards(self) -> dict[str, Card]:
        """The cards of its parts."""
        kinds = {"dataset": self.dataset, "model": self.model, "partition": self.partition}
        return {kind: registry.find(kind, name) for kind, name in kinds.items()}  # type: ignore[arg-type]

    def options(self) -> dict[str, dict[str, Any]]:
        """All options, resolved, by group, as records list them."""
        return {
            "model": as_recorded(self.model_options),
            "partition": as_recorded(self.partition_options),
            "training": as_recorded(self.schedule),
        }


MODEL = "model."
"""With what the name of a model's option begins in a card's usual problem."""

DEFAULTS = {"dataset": "digits", "model": "lenet-dlg", "partition": "iid", "clients": "2", "corrupted": "0"}
"""The problem, unless the user or the cards of attack, defense or data set say otherwise."""


LOOKS = 20
"""How often a model is evaluated where clients are corrupted, unless the user or a card says otherwise: harm that has
passed by the last round is seen only so."""


def usual_problem(
    given: Mapping[str, str], settings: Mapping[str, Mapping[str, str]], methods: Sequence[Card] = ()
) -> ProblemSpec:
    """The problem that the user describes, completed by the usual problems of the methods. Raises UserError.

    Args:
        given: text by name: dataset, model, partition, clients, corrupted, corrupted_data and assumed_corrupted. Any of
            them may be missing.
        settings: options as text, by group: model, partition and training.
        methods: their usual problems replace the defaults, and a later method's replaces an earlier one's. The usual
            problem of the data set replaces all of them.
    """
    usual: dict[str, str] = {}
    for card in methods:
        usual = _replaced(usual, card)

    def text(name: str) -> str:
        return given.get(name, usual.get(name, DEFAULTS[name]))

    dataset, clients = text("dataset"), read_integer("clients", text("clients"), 1)
    usual = _replaced(usual, registry.find("dataset", dataset))
    # Options of the usual model are of no use for another one.
    of_model = {} if "model" in given else {k[len(MODEL) :]: v for k, v in usual.items() if k.startswith(MODEL)}
    model, partition = registry.find("model", text("model")), registry.find("partition", text("partition"))
    corrupted = read_integer("corrupted", text("corrupted"), 0)
    if "corrupted" not in given:
        corrupted = min(corrupted, clients // 2)  # the federation may be smaller than the usual one
    assumed = given.get("assumed_corrupted")
    trains = {name: value for name, value in usual.items() if name in Schedule.__dataclass_fields__}
    trains |= settings.get("training", {})
    schedule = parse_options(Schedule, trains, "training")
    if corrupted and "eval_every" not in trains:
        schedule = replace(schedule, eval_every=max(1, schedule.rounds // LOOKS))
    check_options(schedule, "training")
    return ProblemSpec(
        dataset=dataset,
        model=model.name,
        partition=partition.name,
        clients=clients,
        model_options=model.parse({**of_model, **settings.get("model", {})}),
        partition_options=partition.parse(settings.get("partition", {})),
        schedule=schedule,
        corrupted=corrupted,
        corrupted_data=given.get("corrupted_data", "shard"),
        assumed_corrupted=None if assumed is None else read_integer("assumed-corrupted", assumed, 0),
    )


def _replaced(usual: Mapping[str, str], card: Card) -> dict[str, str]:
    """The usual problem so far with what a card has in its place; another model has none of the former's options."""
    changes = dict(card.usual)
    kept = {k: v for k, v in usual.items() if "model" not in changes or not k.startswith(MODEL)}
    return {**kept, **changes}


def read_integer(name: str, text: str, low: int) -> int:
    """An integer of at least `low`. Raises UserError."""
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"option '{name}' is '{text}', allowed: an integer, {low} or more") from None
    if value < low:
        raise UserError(f"option '{name}' is {value}, allowed: {low} or more")
    return value
