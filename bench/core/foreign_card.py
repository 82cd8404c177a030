"""The card of another package's attack, as data: a process of its own imports it, so that its code never runs here.

`python -m fedarena.core.foreign_card TARGET WHERE` prints the card and the others of its module as JSON. A process that
is forked says the same, where there are such (`fedarena.core.process_template`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field, field, fields, make_dataclass
from typing import Any

from fedarena.core.card import Card, import_card
from fedarena.core.errors import ToldByProcess, UserError
from fedarena.core.fresh_process import ask
from fedarena.core.method_caches import method_cache, on_change
from fedarena.core.options import Needs, scalar
from fedarena.core.process_template import is_running, module_path
from fedarena.core.request_loop import Say

Rebuild = typing.Callable[[str, dict[str, Any]], Any]
"""Options, from the name of their attack and their values."""

_read: dict[tuple[str, str], dict[str, Any]] = {}
"""(where modules are looked for, target) → the card as plain data, of all modules that were imported for a card."""
on_change(_read.clear)

SCALARS = {kind.__name__: kind for kind in (int, float, str, bool)}


@method_cache
def read(target: str, where: str, rebuild: Rebuild) -> Card:
    """The card. Its target cannot be loaded here, and its options are a class of the same fields.

    Args:
        where: what the card is, for messages.
        rebuild: a function of a module, by which another process reads a pickle of such options.

    Raises:
        UserError: the card cannot be imported, or is none.
    """
    plain = _plain_card(target, where)
    try:
        return from_plain(plain, rebuild)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise UserError(f"{where} holds no card: {' '.join(str(error).split())[:300]}") from None


def from_plain(plain: Mapping[str, Any], rebuild: Rebuild) -> Card:
    """The card of `to_plain`. Raises TypeError, ValueError, LookupError or AttributeError where it is none."""
    known = {name: _tuples(value) for name, value in plain.items() if name != "options"}
    return Card(**known, target="", options=_options_class(plain["options"], known["name"], rebuild))


def _plain_card(target: str, where: str) -> dict[str, Any]:
    """The card as plain data. Raises UserError."""
    path = module_path()
    if (path, target) in _read:
        return _read[path, target]
    kind, content = _said(target, where)
    if kind != "cards":
        raise UserError(str(content))
    module = target.partition(":")[0]
    _read.update({(path, f"{module}:{name}"): dict(plain) for name, plain in dict(content).items()})
    return _read[path, target]


def _said(target: str, where: str) -> Any:
    """What the process says. It is a fork where that is no more work than to start Python and import torch."""
    if is_running():
        try:
            return json.loads(ask("fedarena.core.foreign_card", (target, where)))
        except (ToldByProcess, ValueError) as error:
            raise UserError(f"{where} cannot be loaded: {error}") from None
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fedarena.core.foreign_card", target, where],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": module_path()},
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise UserError(f"{where} cannot be loaded: its process ended with status {done.returncode}") from None


def _tuples(value: Any) -> Any:
    """The value with tuples in place of the lists that JSON makes of them."""
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _options_class(declared: Mapping[str, Any], attack: str, rebuild: Rebuild) -> type[Any]:
    def reduce(self: Any) -> Any:
        return rebuild, (attack, {f.name: getattr(self, f.name) for f in fields(self)})

    parts = [
        (one["name"], _type(one["type"]), _field(_tuples(one["default"]), one["metadata"]))
        for one in declared["fields"]
    ]
    made = make_dataclass(declared["name"], parts, frozen=True, namespace={"__reduce__": reduce})
    made.__doc__ = declared["doc"]
    return made


def _field(default: Any, metadata: Mapping[str, Any]) -> Any:
    known = {name: _tuples(value) for name, value in metadata.items()}
    needs = [Needs(other, tuple(values), acts) for other, values, acts in metadata["needs"]]
    return field(default=default, metadata=known | {"needs": needs})


def _type(described: Mapping[str, Any]) -> Any:
    kind = SCALARS[described["scalar"]]
    if described["many"]:
        return tuple[kind, ...]  # type: ignore[valid-type]
    return kind | None if described["optional"] else kind


def _described_type(hint: Any) -> dict[str, Any]:
    arguments = typing.get_args(hint)
    return {
        "scalar": scalar(hint).__name__,
        "many": typing.get_origin(hint) is tuple,
        "optional": type(None) in arguments,
    }


def to_plain(card: Card) -> dict[str, Any]:
    """The card as plain data, which JSON can hold."""
    hints = typing.get_type_hints(card.options)
    plain = {f.name: getattr(card, f.name) for f in fields(card) if f.name not in ("options", "target")}
    return plain | {
        "options": {
            "name": card.options.__name__,
            "doc": card.options.__doc__,
            "fields": [_described(f, hints[f.name]) for f in fields(card.options)],
        }
    }


def _described(one: Field[Any], hint: Any) -> dict[str, Any]:
    needs = [[n.other, list(n.values), n.acts] for n in one.metadata["needs"]]
    return {
        "name": one.name,
        "type": _described_type(hint),
        "default": one.default,
        "metadata": {**one.metadata, "needs": needs},
    }


def main(target: str, where: str) -> None:
    """Print the answer of `work`. What the card's package prints goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(BrokenPipeError):  # who asked has ended
        out.write(work((target, where)))
        out.close()


def work(request: tuple[str, str], say: Say = lambda message: None) -> bytes:
    """The cards of a module by name, or why the one that is asked for cannot be read."""
    target, where = request
    module, _, attribute = target.partition(":")
    try:
        said = json.dumps(["cards", {attribute: to_plain(import_card(target, where)), **_beside(module, attribute)}])
    except UserError as error:
        said = json.dumps(["error", str(error)])
    except (TypeError, ValueError) as error:
        said = json.dumps(["error", f"{where} holds what is no plain data: {' '.join(str(error).split())[:300]}"])
    return said.encode()


def _beside(module: str, attribute: str) -> dict[str, Any]:
    """The module's other cards that can be read. To import it takes far longer than to read them."""
    found = {}
    for name, value in list(vars(sys.modules[module]).items()):
        if isinstance(value, Card) and name != attribute:
            with suppress(TypeError, ValueError):
                plain = to_plain(value)
                json.dumps(plain)
                found[name] = plain
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
