"""The classes of the package with many fields, and the calls that give them arguments by position.

A name is followed through imports and plain assignments, never by running the code. So a call is judged where its class
is named: `Card(…)`, `card.Card(…)`, or `cls(…)` in the class itself. A class that a function receives is not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from helpers.source_tree import import_source, parsed, read_tree

MOST_FIELDS = 5
"""A class with more fields than these is called by keyword."""

MOST_POSITIONAL = 1
"""A call of such a class may name what it is about by position."""

FOLDERS = ("bench", "attacks", "defenses", "datasets", "benchmarks", "tests")


@dataclass(frozen=True)
class Call:
    """A call that passes too many arguments by position."""

    path: str
    line: int
    of: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} calls {self.of} by position"


_AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Scope:
    """The names that a module, class or function binds, each with the dotted name that it stands for."""

    name: str
    names: dict[str, str] = field(default_factory=dict)
    is_class: bool = False


@dataclass(frozen=True)
class _Class:
    """A class of the package: its node, and the dotted names of its bases."""

    node: ast.ClassDef
    bases: tuple[str, ...]


class _Reader(ast.NodeVisitor):
    """Reads one file: the names of its module, the classes that it defines, and what it calls.

    A function's names are taken from its whole body, as Python does.
    """

    def __init__(self, files: Mapping[str, Path], module: str) -> None:
        self.files, self.module = files, module
        self.scopes: list[_Scope] = []
        self.top: dict[str, str] = {}
        self.classes: dict[str, _Class] = {}
        self.calls: list[tuple[ast.Call, str]] = []

    def visit_Module(self, node: ast.Module) -> None:
        self.top = self._enter(node, self.module, is_class=False)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        name = f"{self.scopes[-1].name}.{node.name}"
        self.classes[name] = _Class(node, tuple(base for base in map(self._dotted, node.bases) if base))
        self._enter(node, name, is_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._enter(node, f"{self.scopes[-1].name}.{node.name}", is_class=False)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  (ast's name)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._dotted(node.func)
        if called:
            self.calls.append((node, called))
        self.generic_visit(node)

    def _enter(self, node: ast.Module | ast.ClassDef | _AnyFunction, name: str, *, is_class: bool) -> dict[str, str]:
        scope = _Scope(name, is_class=is_class)
        self.scopes.append(scope)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope.names.update(dict.fromkeys(_parameters(node), ""))
            if len(self.scopes) > 1 and self.scopes[-2].is_class and _is_classmethod(node):
                scope.names[node.args.args[0].arg] = self.scopes[-2].name
        for statement in _own_statements(node.body):
            scope.names.update(self._bound(statement))
        self.generic_visit(node)
        self.scopes.pop()
        return scope.names

    def _bound(self, node: ast.stmt) -> dict[str, str]:
        """The names that a statement binds in the current scope, each with what it stands for ("": nothing known)."""
        match node:
            case ast.Import():
                return {alias.asname or _first(alias.name): _imported(alias) for alias in node.names}
            case ast.ImportFrom():
                source = import_source(self.files, self.module, node)
                return {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                return {node.name: f"{self.scopes[-1].name}.{node.name}"}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return {name: self._dotted(value)}
            case _:
                return {}

    def _dotted(self, node: ast.expr) -> str:
        """The dotted name that an expression stands for, or ""."""
        if isinstance(node, ast.Attribute):
            owner = self._dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if not isinstance(node, ast.Name):
            return ""
        for scope in reversed(self.scopes):
            if node.id in scope.names and (not scope.is_class or scope is self.scopes[-1]):
                return scope.names[node.id]
        return ""


def _own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, without those of the classes and functions in it."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _own_statements(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _own_statements(part.body)


def _imported(alias: ast.alias) -> str:
    """The module that the name of an `import` stands for: `import a.b` binds `a`, `import a.b as c` binds a.b."""
    return alias.name if alias.asname else _first(alias.name)


def _first(name: str) -> str:
    return name.split(".")[0]


def _parameters(node: _AnyFunction) -> list[str]:
    a = node.args
    return [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]


def _is_classmethod(node: _AnyFunction) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "classmethod" for one in node.decorator_list)


class Constructors:
    """The constructors of the package in a repository."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files = read_tree(root).files
        self._readers = {module: self._read(module, path) for module, path in self._files.items()}
        self._classes = {name: one for reader in self._readers.values() for name, one in reader.classes.items()}

    def fields(self, name: str) -> tuple[str, ...] | None:
        """What the constructor of that class takes, or None where the name is no class of the package."""
        one = self._classes.get(self._definition(name))
        return None if one is None else tuple(self._fields(one))

    def large(self) -> list[str]:
        """The classes with more than `MOST_FIELDS` fields."""
        return sorted(name for name in self._classes if len(self.fields(name) or ()) > MOST_FIELDS)

    def positional_calls(self) -> Iterator[Call]:
        """The calls of large classes that pass more than `MOST_POSITIONAL` arguments by position."""
        own = {path: module for module, path in self._files.items()}
        for folder in FOLDERS:
            for path in sorted((self._root / folder).rglob("*.py")):
                reader = self._readers[own[path]] if path in own else self._read(path.stem, path)
                for node, called in reader.calls:
                    if _positional(node) > MOST_POSITIONAL and len(self.fields(called) or ()) > MOST_FIELDS:
                        shown = self._definition(called).rpartition(".")[2]
                        yield Call(path.relative_to(self._root).as_posix(), node.lineno, shown)

    def _read(self, module: str, path: Path) -> _Reader:
        reader = _Reader(self._files, module)
        reader.visit(parsed(path))
        return reader

    def _definition(self, name: str) -> str:
        """The name of a class where it is defined: a module may pass on what it imports."""
        while name not in self._classes:
            module, _, last = name.rpartition(".")
            passed_on = self._readers[module].top.get(last, "") if module in self._readers else ""
            if passed_on in ("", name):
                return name
            name = passed_on
        return name

    def _fields(self, one: _Class) -> list[str]:
        for statement in one.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return _parameters(statement)[1:]
        known = [base for base in (self._classes.get(self._definition(name)) for name in one.bases) if base]
        inherited = [name for base in reversed(known) for name in self._fields(base)]
        if not (_is_dataclass(one.node) or any(base.endswith("NamedTuple") for base in one.bases)):
            return self._fields(known[0]) if known else []
        own = [ast.unparse(s.target) for s in one.node.body if isinstance(s, ast.AnnAssign) and _is_field(s)]
        return list(dict.fromkeys([*inherited, *own]))


def _positional(call: ast.Call) -> float:
    """How many arguments the call passes by position; a star may stand for any number."""
    return float("inf") if any(isinstance(arg, ast.Starred) for arg in call.args) else len(call.args)


def _is_dataclass(node: ast.ClassDef) -> bool:
    names = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return any(ast.unparse(name).rpartition(".")[2] == "dataclass" for name in names)


def _is_field(statement: ast.AnnAssign) -> bool:
    kind, value = ast.unparse(statement.annotation), statement.value
    given = value is None or "init=False" not in ast.unparse(value).replace(" ", "")
    return "ClassVar" not in kind and given
