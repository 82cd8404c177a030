"""The problem that methods are tried on when nothing else is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.options import check_options, parse_options
from fedarena.problem.schedule import Schedule

if TYPE_CHECKING:
    from fedarena.problem.problem import ProblemSpec

DEFAULTS = {"dataset": "digits", "model": "lenet-dlg", "partition": "iid", "clients": "2", "corrupted": "0"}
"""The problem, unless somebody or the cards of attack, defense or data set say otherwise."""


def usual_problem(
    said: Mapping[str, str], settings: Mapping[str, Mapping[str, str]], methods: Sequence[Card] = ()
) -> ProblemSpec:
    """The problem that somebody asks for, filled up with what the methods are usually tried on. Raises UserError.

    Args:
        said: dataset, model, partition, clients, corrupted, corrupted_data and belief, as far as they were named.
        settings: options as text, by group: model, partition and training.
        methods: whose usual problem takes the place of the defaults, later ones before earlier ones; the data set's
            comes before all of them.
    """
    usual: dict[str, str] = {}
    for card in methods:
        usual |= dict(card.usual)

    def told(name: str) -> str:
        return said.get(name, usual.get(name, DEFAULTS[name]))

    dataset, clients = told("dataset"), read_integer("clients", told("clients"), 1)
    usual |= dict(registry.find("dataset", dataset).usual)
    model, partition = registry.find("model", told("model")), registry.find("partition", told("partition"))
    corrupted = read_integer("corrupted", told("corrupted"), 0)
    if "corrupted" not in said:
        corrupted = min(corrupted, clients // 2)  # the usual number, where the federation is smaller than usual
    law = said.get("corrupted_data", "shard")
    belief = read_integer("belief", said["belief"], 0) if "belief" in said else None
    trains = {name: value for name, value in usual.items() if name in Schedule.__dataclass_fields__}
    schedule = parse_options(Schedule, {**trains, **settings.get("training", {})}, "training")
    check_options(schedule, "training")
    model_options = model.parse(settings.get("model", {}))
    partition_options = partition.parse(settings.get("partition", {}))
    from fedarena.problem.problem import ProblemSpec

    options = (model_options, partition_options, schedule)
    return ProblemSpec(dataset, model.name, partition.name, clients, *options, corrupted, law, belief)


def read_integer(name: str, text: str, low: int) -> int:
    """An integer of at least `low`. Raises UserError."""
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"option '{name}' is '{text}', allowed: an integer, {low} or more") from None
    if value < low:
        raise UserError(f"option '{name}' is {value}, allowed: {low} or more")
    return value
