"""The layers of the package, and what breaks them in a tree of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import networkx as nx

from helpers.source_tree import SourceTree, literals

LAYERS = (
    ("core",),
    ("datasets",),
    ("models",),
    ("problem",),
    ("contracts",),
    ("federation",),
    ("records",),
    ("goals",),
    ("attacks", "defenses"),
    ("interop",),
    ("runs",),
    ("board",),
    ("export",),
    ("reproduce",),
    ("testing",),
    ("cli",),
    ("api",),
)
"""Parts of the package, bottom up. A part imports what stands above its line here, and nothing beside or below it."""

HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}

TOP_OF_BENCH = frozenset({"__init__.py", "__main__.py", "py.typed"})
"""The files that may stand in bench/ itself."""


def part_of(module: str) -> str | None:
    """The part of the package that a module belongs to; None for the package itself and its `__main__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def modules_of_no_layer(tree: SourceTree) -> list[str]:
    """Modules of a part that `LAYERS` does not order."""
    return [module for module in tree.files if part_of(module) not in {None, *HEIGHT}]


def upward_imports(tree: SourceTree) -> list[str]:
    """Imports by one part of another that is not below it."""
    wrong = []
    for one in tree.imports:
        importer, imported = part_of(one.importer), part_of(one.imported)
        if importer in HEIGHT and imported in HEIGHT and importer != imported and HEIGHT[importer] <= HEIGHT[imported]:
            wrong.append(str(one))
    return wrong


def imports_of_the_public_names(tree: SourceTree) -> list[str]:
    """Imports of what `fedarena` itself exports, by a module inside: those names come from every layer."""
    return [
        str(one)
        for one in tree.imports
        if one.imported == "fedarena"
        and part_of(one.importer) is not None
        and not (one.names and all(name.startswith("__") for name in one.names))
    ]


def circles_of_files(tree: SourceTree) -> list[list[str]]:
    """Groups of files each of which imports, in one step or several, all others of its group."""
    return _circles((one.importer, one.imported) for one in tree.imports)


def circles_of_folders(tree: SourceTree) -> list[list[str]]:
    """Groups of folders each of which imports, in one step or several, all others of its group.

    A folder is what lies in it directly: a folder and one inside it are two.
    """
    return _circles(
        (tree.folder(one.importer), tree.folder(one.imported)) for one in tree.imports if one.imported in tree.files
    )


def _circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The strongly connected groups of more than one; the root of the package exports every layer, and is left out."""
    graph = nx.DiGraph((a, b) for a, b in edges if "fedarena" not in (a, b))
    return sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)


def stray_files(root: Path) -> list[str]:
    """Files in bench/ itself that belong into one of its folders."""
    return sorted(p.name for p in (root / "bench").iterdir() if p.is_file() and p.name not in TOP_OF_BENCH)


def named_methods(
    root: Path, names: Iterable[str], allowed: Mapping[tuple[str, str], str], outside: tuple[str, ...] = ()
) -> Iterator[str]:
    """Places where a file of the harness names a method in a string.

    Args:
        root: the repository.
        names: the methods.
        allowed: (file, method) → why the file may name it.
        outside: folders of bench/ that are not the harness.
    """
    word = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in sorted(names, key=len)[::-1]))
    for literal in literals(root, "bench"):
        if not literal.path.startswith(outside):
            for name in word.findall(literal.text):
                if (literal.path, name) not in allowed:
                    yield f"{literal.path}:{literal.line} names {name}"
