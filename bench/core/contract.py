"""Whether the class of a method keeps the form of its contract, so that the harness can call it."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from fedarena.core.errors import UserError, place_of, type_of


def require_contract(kind: str, made: Any, contracts: tuple[type, ...]) -> None:
    """Raise UserError, with the place, unless a method is a complete subclass of a contract.

    Its methods take the parameters that the contract's take. A contract may have a `fault`, which says what else is
    wrong with a subclass.

    Args:
        contracts: the classes that it may be of; the first one that fits is its contract.
    """
    contract = next((one for one in contracts if isinstance(made, type) and issubclass(made, one)), None)
    if contract is not None:
        return _require_form(kind, made, contract)
    allowed = " or ".join(one.__name__ for one in contracts if not issubclass(one.__mro__[1], contracts))
    told = f"inherits from {made.__mro__[1].__name__}" if isinstance(made, type) else f"is {type_of(made)}"
    raise UserError(f"{kind} {place_of(made)} {told}, allowed: a subclass of {allowed}")


@cache
def _require_form(kind: str, made: Any, contract: Any) -> None:
    if missing := ", ".join(sorted(made.__abstractmethods__)):
        raise UserError(
            f"{kind} {place_of(made)} lacks {missing}, allowed: a class with all that its contract leaves open"
        )
    for name in dir(contract):
        if callable(getattr(contract, name)) and (name in ("__init__", "__call__") or not name.startswith("_")):
            _require_parameters(kind, made, contract, name)
    if fault := getattr(made, "fault", str)():
        raise UserError(f"{kind} {place_of(made)} {fault}")


def _require_parameters(kind: str, made: type, contract: type, name: str) -> None:
    own = getattr(made, name)
    try:
        taken, given = inspect.signature(own), list(inspect.signature(getattr(contract, name)).parameters)
    except (TypeError, ValueError):  # what is not written in Python may not tell
        return
    try:
        taken.bind(*given[isinstance(inspect.getattr_static(made, name), staticmethod) :])
    except TypeError:
        told = f"takes ({', '.join(taken.parameters)}), allowed: ({', '.join(given)})"
        raise UserError(f"{kind} {place_of(own)} {told}") from None
