"""The problem that methods are tried on when nothing else is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.options import check_options, parse_options
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

DEFAULTS = {"dataset": "digits", "model": "lenet-dlg", "partition": "iid", "clients": "2", "corrupted": "0"}
"""The problem, unless the user or the cards of attack, defense or data set say otherwise."""


def usual_problem(
    given: Mapping[str, str], settings: Mapping[str, Mapping[str, str]], methods: Sequence[Card] = ()
) -> ProblemSpec:
    """The problem that the user describes, completed by what the methods are usually tried on. Raises UserError.

    Args:
        given: text by name: dataset, model, partition, clients, corrupted, corrupted_data and assumed_corrupted. Any of
            them may be missing.
        settings: options as text, by group: model, partition and training.
        methods: their usual problems replace the defaults, and a later method's replaces an earlier one's. The usual
            problem of the data set replaces all of them.
    """
    usual: dict[str, str] = {}
    for card in methods:
        usual |= dict(card.usual)

    def text(name: str) -> str:
        return given.get(name, usual.get(name, DEFAULTS[name]))

    dataset, clients = text("dataset"), read_integer("clients", text("clients"), 1)
    usual |= dict(registry.find("dataset", dataset).usual)
    model, partition = registry.find("model", text("model")), registry.find("partition", text("partition"))
    corrupted = read_integer("corrupted", text("corrupted"), 0)
    if "corrupted" not in given:
        corrupted = min(corrupted, clients // 2)  # the federation may be smaller than the usual one
    assumed = given.get("assumed_corrupted")
    trains = {name: value for name, value in usual.items() if name in Schedule.__dataclass_fields__}
    schedule = parse_options(Schedule, {**trains, **settings.get("training", {})}, "training")
    check_options(schedule, "training")
    return ProblemSpec(
        dataset=dataset,
        model=model.name,
        partition=partition.name,
        clients=clients,
        model_options=model.parse(settings.get("model", {})),
        partition_options=partition.parse(settings.get("partition", {})),
        schedule=schedule,
        corrupted=corrupted,
        corrupted_data=given.get("corrupted_data", "shard"),
        assumed_corrupted=None if assumed is None else read_integer("assumed-corrupted", assumed, 0),
    )


def read_integer(name: str, text: str, low: int) -> int:
    """An integer of at least `low`. Raises UserError."""
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"option '{name}' is '{text}', allowed: an integer, {low} or more") from None
    if value < low:
        raise UserError(f"option '{name}' is {value}, allowed: {low} or more")
    return value
