"""Whether the class or function of a method keeps the form of its contract, so that the harness can call it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

from fedarena.core.errors import UserError, place_of, type_of


def is_built_in(made: Any) -> bool:
    """Whether a class or a function is this package's own."""
    return str(getattr(made, "__module__", "")).startswith("fedarena.")


def inherit_together(made: type, contract: type, method: str, about: Sequence[str]) -> None:
    """Have what a class says about one of its methods, and faster forms of it, be about the one that it has.

    Of a class that has the method from itself, from a mix-in or by an assignment, but these from a base further away,
    they are about another method: the contract's own take their place.
    """

    def distance(name: str) -> int:
        return next(i for i, base in enumerate(made.__mro__) if name in vars(base))

    for name in about:
        if distance(method) < distance(name):
            setattr(made, name, getattr(contract, name))


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


def require_function(kind: str, made: Any, given: Sequence[str]) -> None:
    """Raise UserError, with the place, unless a method can be called with arguments of these names in this order."""
    if not callable(made) or (isinstance(made, type) and not _takes(made, given)):
        allowed = f"a function of ({', '.join(given)})"
        raise UserError(f"{kind} {place_of(made)} is {type_of(made)}, allowed: {allowed}")
    _require_parameters(kind, made, given)


@cache
def _require_form(kind: str, made: Any, contract: Any) -> None:
    if missing := ", ".join(sorted(made.__abstractmethods__)):
        raise UserError(
            f"{kind} {place_of(made)} lacks {missing}, allowed: a class with all that its contract leaves open"
        )
    for name in dir(contract):
        if callable(getattr(contract, name)) and (name in ("__init__", "__call__") or not name.startswith("_")):
            given = list(inspect.signature(getattr(contract, name)).parameters)
            alone = isinstance(inspect.getattr_static(made, name), staticmethod)
            _require_parameters(kind, getattr(made, name), given[alone:])
    if fault := getattr(made, "fault", str)():
        raise UserError(f"{kind} {place_of(made)} {fault}")


def _require_parameters(kind: str, own: Any, given: Sequence[str]) -> None:
    if not _takes(own, given):
        none = inspect.Parameter.empty
        bare = [one.replace(annotation=none, default=none) for one in inspect.signature(own).parameters.values()]
        told = f"takes {inspect.Signature(bare)}, allowed: ({', '.join(given)})"
        raise UserError(f"{kind} {place_of(own)} {told}")


def _takes(own: Any, given: Sequence[str]) -> bool:
    try:
        taken = inspect.signature(own)
    except (TypeError, ValueError):  # what is not written in Python may not tell
        return True
    try:
        taken.bind(*given)
    except TypeError:
        return False
    return True
