"""A test's name is a short sentence."""

from __future__ import annotations

import ast

from helpers.paths import ROOT
from helpers.source_tree import parsed

LONGEST = 70


def test_no_test_has_a_long_name() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {len(node.name)} characters"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and len(node.name) > LONGEST
    ]
    assert not long, "\n".join(long)
