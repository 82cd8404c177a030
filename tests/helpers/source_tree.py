"""What the source says of itself: its modules, what they import, the strings they hold, how long their functions are.

Files are parsed and never imported, so that a made-up tree can be read as well as the repository.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

PACKAGES = {
    "bench": "fedarena",
    "attacks": "fedarena.attacks",
    "defenses": "fedarena.defenses",
    "datasets": "fedarena.datasets",
}
"""Folder of the repository → the package that its files are installed as."""


@dataclass(frozen=True)
class Import:
    """One module of the package imports another.

    Attributes:
        importer, imported: dotted names.
        names: what a `from … import` takes out of the module; empty where the module itself is imported.
        line: where the statement stands in the importer's file.
    """

    importer: str
    imported: str
    names: tuple[str, ...]
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@dataclass(frozen=True)
class SourceTree:
    """The package's modules in a repository.

    Attributes:
        files: dotted name → file.
        imports: every import of one module by another, those in functions and under `TYPE_CHECKING` too.
    """

    files: Mapping[str, Path]
    imports: tuple[Import, ...]

    def folder(self, module: str) -> str:
        """The package whose folder holds the module's file."""
        return _folder(self.files, module)


def read_tree(root: Path) -> SourceTree:
    """The modules of the repository `root`."""
    files = {}
    for folder, package in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            files[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return SourceTree(files, tuple(_imports(files)))


def written(root: Path, files: dict[str, str]) -> SourceTree:
    """The tree of made-up files (path → source), which are written below `root`."""
    for path, source in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(dedent(source), encoding="utf-8")
    return read_tree(root)


def _imports(files: Mapping[str, Path]) -> Iterator[Import]:
    for module, path in files.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if _is_own(alias.name):
                        yield Import(module, alias.name, (), node.lineno)
            elif isinstance(node, ast.ImportFrom):
                source = import_source(files, module, node)
                if _is_own(source):
                    yield from _from_imports(files, module, source, node)


def import_source(files: Mapping[str, Path], module: str, node: ast.ImportFrom) -> str:
    """The absolute name of the module that a `from` import takes names from."""
    if not node.level:
        return node.module or ""
    parts = _folder(files, module).split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _from_imports(files: Mapping[str, Path], module: str, source: str, node: ast.ImportFrom) -> Iterator[Import]:
    """One import for each submodule that is named, and one for the names that `source` itself defines."""
    names = [alias.name for alias in node.names]
    submodules = [name for name in names if f"{source}.{name}" in files]
    for name in submodules:
        yield Import(module, f"{source}.{name}", (), node.lineno)
    defined = tuple(name for name in names if name not in submodules)
    if defined and source != module:
        yield Import(module, source, defined, node.lineno)


def _folder(files: Mapping[str, Path], module: str) -> str:
    return module if files[module].name == "__init__.py" else module.rpartition(".")[0]


@dataclass(frozen=True)
class Literal:
    """A string in a file, named from the repository's root."""

    path: str
    text: str
    line: int


def literals(root: Path, folder: str) -> Iterator[Literal]:
    """The strings in the files below a folder, parts of f-strings among them; docstrings are left out."""
    for path in sorted((root / folder).rglob("*.py")):
        tree = parsed(path)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield Literal(path.relative_to(root).as_posix(), node.value, node.lineno)


@dataclass(frozen=True)
class Function:
    """A function or method, and its lines from `def` to the end of its body."""

    path: str
    name: str
    lines: int


def functions(root: Path) -> Iterator[Function]:
    """The package's functions and methods, nested ones too."""
    for folder in PACKAGES:
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    yield Function(path.relative_to(root).as_posix(), node.name, lines)


def _is_own(name: str) -> bool:
    return name.split(".")[0] == "fedarena"


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))
