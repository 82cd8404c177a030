"""No function of the package is long or has many branches. (ruff's C901 counts fewer of them than radon.)"""

from __future__ import annotations

from helpers.paths import ROOT
from helpers.source_tree import PACKAGES, functions, parsed
from radon.complexity import cc_visit_ast

MOST_LINES = 50
MOST_BRANCHES = 20


def test_no_function_is_longer_than_fifty_lines() -> None:
    long = [f"{f.path}: {f.name} has {f.lines} lines" for f in functions(ROOT) if f.lines > MOST_LINES]
    assert not long, "\n".join(long)


def test_no_function_has_a_complexity_above_twenty() -> None:
    """McCabe's number as radon counts it, with boolean operators and comprehensions."""
    complex_ = [
        f"{path.relative_to(ROOT)}: {block.name} has {block.complexity}"
        for folder in PACKAGES
        for path in sorted((ROOT / folder).rglob("*.py"))
        for block in cc_visit_ast(parsed(path))
        if block.letter != "C" and block.complexity > MOST_BRANCHES
    ]
    assert not complex_, "\n".join(complex_)
