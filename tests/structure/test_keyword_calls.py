"""A constructor with many fields is called by keyword, so that a reader sees what each argument is."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.constructor_calls import Constructors
from helpers.paths import ROOT
from helpers.source_tree import written

CLASSES = '''
    import dataclasses
    from dataclasses import dataclass, field
    from typing import ClassVar, NamedTuple

    @dataclass(frozen=True)
    class Large:
        a: int
        b: int
        c: int
        d: int = 0
        e: int = 0
        f: list[int] = field(default_factory=list)

        @classmethod
        def made(cls):
            return cls(1, b=2, c=3)

    @dataclass
    class Small:
        kind: ClassVar[str] = "small"
        a: int
        b: int
        c: int
        d: int
        e: int
        f: int = field(init=False)

    @dataclasses.dataclass
    class Grown(Small):
        a: int = 1
        g: int = 0

    class Child(Large):
        """Fields come from the base alone."""

    class Row(NamedTuple):
        a: int
        b: int
        c: int
        d: int
        e: int
        f: int = 0

    class Plain:
        def __init__(self, a, b, c, *, d, e, f=0): ...
'''


def constructors(root: Path, path: str = "bench/core/b.py", source: str = "") -> Constructors:
    """The constructors of a made-up repository that holds `CLASSES` and one file more."""
    written(root, {"bench/core/a.py": CLASSES, "bench/core/c.py": "from fedarena.core.a import Large", path: source})
    return Constructors(root)


def test_large_constructors_are_called_by_keyword() -> None:
    """The first argument may stand without its name: it is what the object is about."""
    calls = [str(call) for call in Constructors(ROOT).positional_calls()]
    assert not calls, "\n".join(calls)


def test_the_fields_of_a_class_are_what_its_constructor_takes(tmp_path: Path) -> None:
    found = constructors(tmp_path)
    fields = {name: "".join(found.fields(f"fedarena.core.a.{name}") or ()) for name in ("Large", "Small", "Grown")}
    assert fields == {"Large": "abcdef", "Small": "abcde", "Grown": "abcdeg"}
    names = ("Child", "Grown", "Large", "Plain", "Row")
    assert found.large() == [f"fedarena.core.a.{name}" for name in names]
    assert found.fields("fedarena.core.a.field") is None


@pytest.mark.parametrize(
    "source",
    [
        "from fedarena.core.a import Large\nLarge(1, 2, c=3)",
        "from fedarena.core.a import Child as Kind\nKind(1, 2, c=3)",
        "from fedarena.core import a\na.Grown(1, 2)",
        "import fedarena.core.a\nfedarena.core.a.Row(1, 2, 3, 4, 5)",
        "import fedarena.core.a as module\nmodule.Plain(1, 2, c=3)",
        "from fedarena.core.c import Large\nLarge(1, 2, c=3)",
        "from fedarena.core.a import Large\nLarge(*range(3))",
        "from fedarena.core import a\nKind = a.Large\nKind(1, 2, c=3)",
        "def f():\n    if True:\n        from fedarena.core.a import Large\n    return lambda: [Large(1, 2, c=3)]",
        "from fedarena.core.a import Large\nclass Own(Large):\n    pass\nprint(Own(1, 2, c=3))",
        "from fedarena.core.a import Large\nclass Own(Large):\n    @classmethod\n    def f(cls): return cls(1, 2, c=3)",
    ],
)
def test_a_positional_call_is_found(source: str, tmp_path: Path) -> None:
    (call,) = constructors(tmp_path, "bench/core/b.py", source).positional_calls()
    assert (call.path, call.line) == ("bench/core/b.py", len(source.splitlines()))


@pytest.mark.parametrize("path", ["benchmarks/b.py", "tests/core/test_b.py", "attacks/b.py"])
def test_a_positional_call_is_found_in_every_folder(path: str, tmp_path: Path) -> None:
    found = constructors(tmp_path, path, "from fedarena.core.a import Large\n\nLarge(1, 2, c=3)")
    assert [str(call) for call in found.positional_calls()] == [f"{path}:3 calls Large by position"]


@pytest.mark.parametrize(
    "source",
    [
        "from fedarena.core.a import Large\nLarge(1, b=2, c=3)",
        "from fedarena.core.a import Large\nLarge(**{})",
        "from fedarena.core.a import Small\nSmall(1, 2, 3, 4, 5)",
        "from elsewhere import Large\nLarge(1, 2, 3)",
        "from fedarena.core.a import Large\ndef f(Large): return Large(1, 2, 3)",
        "from fedarena.core.a import Large\ndef f():\n    def Large(*a): ...\n    return Large(1, 2, 3)",
        "def f():\n    from fedarena.core.a import Large\nLarge(1, 2, 3)",
    ],
)
def test_a_right_call_is_not_found(source: str, tmp_path: Path) -> None:
    assert list(constructors(tmp_path, "bench/core/b.py", source).positional_calls()) == []
