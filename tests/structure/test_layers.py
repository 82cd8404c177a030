"""The package is built in layers: imports go downwards, in no circle, and the harness knows no method by name."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from helpers.layers import (
    circles_of_files,
    circles_of_folders,
    imports_of_the_public_names,
    modules_of_no_layer,
    named_methods,
    stray_files,
    upward_imports,
)
from helpers.paths import ROOT
from helpers.source_tree import SourceTree, read_tree

from fedarena.core import registry
from fedarena.core.card import Kind

METHODS: tuple[Kind, ...] = ("defense", "aggregator", "secure", "attack")
ORDINARY_WORDS = frozenset({"mean", "median", "window"})
"""Names of methods that are words of statistics or of the code as well. As strings they say nothing about a method."""

EXAMPLE = "an example in a command's help or in what an error allows"
PAPER = "the paper that the network is from"
EXAMPLES = {
    "bench/cli/__init__.py": ("dbcl", "dlg"),
    "bench/cli/problem_args.py": ("nnm", "krum"),
    "bench/cli/reproduce.py": ("two-stage",),
    "bench/cli/run.py": ("dbcl", "krum", "dp-sgd", "nnm", "dlg", "delayed", "label-flip"),
    "bench/contracts/defense.py": ("fedavg", "baffle"),
    "bench/federation/compose.py": ("label-flip", "krum"),
}
WHY_NAMED = {
    **{(path, name): EXAMPLE for path, names in EXAMPLES.items() for name in names},
    ("bench/models/cards/cnn_two_stage.py", "two-stage"): PAPER,
    ("bench/models/cards/mlp_two_stage.py", "two-stage"): PAPER,
    ("bench/models/cards/distributions.py", "two-stage"): PAPER,
    ("bench/models/cards/cnn_lfw.py", "fedavg"): "the card says which run its figures were measured in",
    ("bench/api/single_methods.py", "inverting-gradients"): "the attack where none is named",
    ("bench/contracts/baseline.py", "fedavg"): "the one place that says what defenses are measured against",
    ("bench/interop/breaching.py", "analytic"): "a type of breaching's attacks",
    ("bench/board/published.py", "fedavg"): "a key of the published file",
    ("bench/board/published_schema.py", "fedavg"): "a key of the published file",
    ("bench/records/command.py", "label-flip"): "a run without an attack has no command of its own, so it borrows one",
    ("bench/records/command.py", "gradient-estimate"): "likewise, where no client can be corrupted",
}
"""(file of the harness, method) → why the file may name the method."""


@pytest.fixture(scope="module")
def tree() -> SourceTree:
    return read_tree(ROOT)


def assert_none(complaints: Collection[str]) -> None:
    """There are none; a failure shows them all."""
    assert not complaints, "\n".join(complaints)


def assert_no_circle(circles: Collection[list[str]]) -> None:
    assert_none([", ".join(circle) for circle in circles])


def test_every_module_belongs_to_a_layer(tree: SourceTree) -> None:
    assert_none(modules_of_no_layer(tree))


def test_no_layer_imports_a_higher_one(tree: SourceTree) -> None:
    assert_none(upward_imports(tree))


def test_no_module_inside_imports_the_public_names(tree: SourceTree) -> None:
    assert_none(imports_of_the_public_names(tree))


def test_no_files_import_each_other_in_a_circle(tree: SourceTree) -> None:
    assert_no_circle(circles_of_files(tree))


def test_no_folders_import_each_other_in_a_circle(tree: SourceTree) -> None:
    assert_no_circle(circles_of_folders(tree))


def test_bench_itself_holds_no_module_but_the_entries() -> None:
    assert_none(stray_files(ROOT))


def registered_methods() -> set[str]:
    """The names of all defenses, rules, secure sums and attacks but those that are ordinary words."""
    return {name for kind in METHODS for name in registry.registries()[kind].names()} - ORDINARY_WORDS


def test_the_harness_names_no_method() -> None:
    assert_none(list(named_methods(ROOT, registered_methods(), WHY_NAMED, outside=("bench/reproduce/",))))


def test_every_exception_is_still_needed() -> None:
    harness = list(named_methods(ROOT, registered_methods(), {}, outside=("bench/reproduce/",)))
    unused = [f"{path}: {name}" for path, name in WHY_NAMED if not any(_is_at(line, path, name) for line in harness)]
    assert_none(unused)


def _is_at(line: str, path: str, name: str) -> bool:
    return line.startswith(f"{path}:") and line.endswith(f" names {name}")
