"""Methods in a single file, without a package: `--plugin my_method.py`.

The file has its cards at the top level: `NAME = Card(name="…", kind="…", …)`, a function below a decorator such as
`@fa.rule("…")` (`fedarena.runs.short_methods`), or `NAME = fa.rule("…")(function)`. They are found in its syntax tree,
so that nothing of it runs before one of its methods is used. The paths are kept in an environment variable, by which
worker processes know them, too.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from fedarena.core.card import KINDS
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.files import resolved
from fedarena.core.method_caches import forget_methods

VARIABLE = "FEDARENA_PLUGINS"
"""The variable with the absolute paths, separated as those of PATH."""

_read: dict[Path, tuple[bytes, tuple[Claim, ...]]] = {}
"""Files that this process has read → their contents, and their cards."""

DECORATORS = {"rule": "aggregator", "defense": "defense", "poisoning": "attack", "privacy_attack": "attack"}
"""Decorators that make a card of a function → the kind of the card."""


@dataclass(frozen=True)
class Claim:
    """A card in a file.

    Attributes:
        kind, name: what it claims to be. target: "module:attribute".
        file: the name of the file.
    """

    kind: str
    name: str
    target: str
    file: str


def use(paths: Sequence[str]) -> None:
    """Make the methods of these files known, here and in processes that this one starts.

    Raises:
        UserError: a file that cannot be read or imported, or has no card.
    """
    renew()
    known = _paths()
    for path in paths:
        place = resolved(path)
        if not place.is_file():
            raise UserError(f"option 'plugin' is {path}, which is not a file")
        if os.pathsep in str(place):
            raise UserError(f"option 'plugin' is {path}, allowed: a path without '{os.pathsep}'")
        claims_of(place)
        known.append(str(place))
    if (value := os.pathsep.join(dict.fromkeys(known))) != os.environ.get(VARIABLE, ""):
        os.environ[VARIABLE] = value
        forget_methods()


def renew() -> None:
    """Forget the files that changed since they were read, so that they are read again; those that are gone for good."""
    if changed := [place for place, (text, _) in _read.items() if _text(place) != text]:
        for place in changed:
            _forget(place)
        os.environ[VARIABLE] = os.pathsep.join(path for path in _paths() if Path(path).is_file())
        forget_methods()


def in_use() -> tuple[tuple[str, bytes | None], ...]:
    """The paths of the files that are in use, with what they contain."""
    return tuple((path, _text(Path(path))) for path in _paths())


def _paths() -> list[str]:
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def _text(place: Path) -> bytes | None:
    """What a file contains; None where it cannot be read."""
    try:
        return place.read_bytes()
    except OSError:
        return None


def _forget(place: Path) -> None:
    """Forget what was read of a file, and its module."""
    del _read[place]
    if getattr(sys.modules.get(place.stem), "__file__", None) == str(place):
        del sys.modules[place.stem]
    with suppress(OSError):  # Python takes compiled code for new if size and second of the file are the same
        Path(cache_from_source(str(place))).unlink()
    importlib.invalidate_caches()


def claims() -> Iterator[Claim]:
    """The cards of all files that are in use. Raises UserError."""
    for path in _paths():
        yield from claims_of(Path(path))


def claims_of(path: Path) -> tuple[Claim, ...]:
    """The cards of a file as it was first read, which can be imported from now on. Raises UserError."""
    if path in _read:
        return _read[path][1]
    try:
        text = path.read_bytes()
        tree = ast.parse(text, str(path))
    except (SyntaxError, ValueError) as error:
        number = getattr(error, "lineno", None)  # none where the file is no text
        line = "" if number is None else f", line {number}"
        raise UserError(f"option 'plugin' is {path.name}{line}: {getattr(error, 'msg', error)}") from None
    except OSError as error:
        raise UserError(f"option 'plugin' is {path}, which cannot be read: {error.strerror}") from None
    found = tuple(
        Claim(kind=kind, name=name, target=f"{path.stem}:{attribute}", file=path.name)
        for attribute, name, kind in _cards(tree, path.name)
    )
    if not found:
        raise UserError(
            f"option 'plugin' is {path.name}, which has no card: at its top level a line such as "
            'NAME = Card(name="…", kind="…", …) is missing, or a function below @fa.rule("…")'
        )
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    _require_own_name(path)
    _read[path] = text, found
    return found


def _require_own_name(path: Path) -> None:
    """Raise UserError where the file's name is no module's, or another module's."""
    spec = find_spec(path.stem) if path.stem.isidentifier() else None
    if spec is None or spec.origin is None or resolved(spec.origin) != path:
        name = re.sub(r"\W|^(?=\d)", "_", path.stem) if spec is None else f"my_{path.stem}"
        why = "another module has this name" if spec is not None else "it is no name of a module"
        raise UserError(
            f"option 'plugin' is {path.name}, which cannot be imported: {why}, rename it, such as {name}.py"
        )


def _cards(tree: ast.Module, file: str) -> Iterator[tuple[str, str, str]]:
    """(attribute, name, kind) of each card. Raises UserError for one of an unknown kind."""
    short = _imported(tree)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in statement.decorator_list:
                yield from _decorated(statement.name, decorator, short)
            continue
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            place, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            place, value = statement.target, statement.value
        else:
            continue
        if not (isinstance(place, ast.Name) and isinstance(value, ast.Call)):
            continue
        yield from _decorated(place.id, value.func, short)
        given = _constants(value)
        if (
            _called(value, short) == "Card"
            and isinstance(given.get("name"), str)
            and isinstance(given.get("kind"), str)
        ):
            kind = str(given["kind"])
            if kind not in KINDS:
                where = f"option 'plugin' is {file}, line {value.lineno}"
                raise UserError(f"{where}: unknown kind {kind!r}{did_you_mean(kind, KINDS, DECORATORS)}")
            yield place.id, str(given["name"]), kind


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names of a file's own → the names that they have in the modules that they are imported from."""
    imports = [statement for statement in tree.body if isinstance(statement, ast.ImportFrom)]
    return {one.asname: one.name for statement in imports for one in statement.names if one.asname}


def _decorated(attribute: str, decorator: ast.expr, short: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(attribute, name, kind) of the card that a decorator makes of a function."""
    if isinstance(decorator, ast.Call) and (kind := DECORATORS.get(_called(decorator, short))):
        first = [one.value for one in decorator.args[:1] if isinstance(one, ast.Constant)]
        name = first[0] if first else _constants(decorator).get("name")
        if isinstance(name, str):
            yield attribute, name, kind


def _called(call: ast.Call, short: Mapping[str, str]) -> str:
    """The name of what is called, without its module."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    name = str(getattr(call.func, "id", ""))
    return short.get(name, name)


def _constants(call: ast.Call) -> dict[str | None, object]:
    """The keywords of a call that are constants."""
    return {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}
