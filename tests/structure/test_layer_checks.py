"""The checks of the layers find what is wrong with small made-up trees, and nothing where all is right."""

from __future__ import annotations

from pathlib import Path

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
from helpers.source_tree import functions, literals, written


def test_downward_imports_are_right(tmp_path: Path) -> None:
    tree = written(
        tmp_path,
        {
            "bench/__init__.py": "from fedarena.api import run\n",
            "bench/core/rng.py": "import math\n",
            "bench/problem/task.py": "from fedarena.core import rng\n",
            "attacks/dlg.py": "from fedarena.problem.task import Task\nfrom fedarena import __version__\n",
            "bench/api.py": "import fedarena.attacks.dlg\nimport fedarena.core.rng as r\n",
        },
    )
    checks = (modules_of_no_layer, upward_imports, imports_of_the_public_names, circles_of_files, circles_of_folders)
    assert [check(tree) for check in checks] == [[], [], [], [], []]
    assert len(tree.imports) == 6


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("bench/core/a.py", "from fedarena.goals.goal import Goal", "core.a:1 imports goals.goal"),
        ("bench/core/a.py", "from fedarena.goals import goal", "core.a:1 imports goals.goal"),
        ("bench/core/a.py", "import fedarena.goals.goal", "core.a:1 imports goals.goal"),
        ("bench/core/a.py", "from ..goals import goal", "core.a:1 imports goals.goal"),
        ("bench/core/__init__.py", "from ..goals.goal import Goal", "core:1 imports goals.goal"),
        ("bench/core/a.py", "def f():\n    import fedarena.goals.goal", "core.a:2 imports goals.goal"),
        ("bench/core/a.py", "if TYPE_CHECKING:\n    from fedarena.goals.goal import G", "core.a:2 imports goals.goal"),
        ("bench/records/store.py", "import fedarena.attacks.dlg", "records.store:1 imports attacks.dlg"),
        ("attacks/steer.py", "import fedarena.defenses.dbcl", "attacks.steer:1 imports defenses.dbcl"),
        ("defenses/krum.py", "from fedarena.attacks import dlg", "defenses.krum:1 imports attacks.dlg"),
    ],
)
def test_an_upward_import_is_found(path: str, source: str, complaint: str, tmp_path: Path) -> None:
    others = dict.fromkeys(("bench/goals/goal.py", "attacks/dlg.py", "defenses/dbcl.py"), "")
    (found,) = upward_imports(written(tmp_path, {**others, path: source}))
    assert found.replace("fedarena.", "") == complaint


def test_a_module_of_no_layer_is_found(tmp_path: Path) -> None:
    assert modules_of_no_layer(written(tmp_path, {"bench/extras/a.py": "", "bench/core/b.py": ""})) == [
        "fedarena.extras.a"
    ]


def test_an_import_of_the_public_names_is_found(tmp_path: Path) -> None:
    sources = {
        "bench/__init__.py": "",
        "attacks/a.py": "from fedarena import Card",
        "attacks/b.py": "import fedarena",
    }
    assert imports_of_the_public_names(written(tmp_path, sources)) == [
        "fedarena.attacks.a:1 imports fedarena",
        "fedarena.attacks.b:1 imports fedarena",
    ]


def test_a_circle_of_files_is_found(tmp_path: Path) -> None:
    tree = written(
        tmp_path,
        {
            "bench/core/a.py": "from fedarena.core.b import x",
            "bench/core/b.py": "from fedarena.core import c",
            "bench/core/c.py": "def late():\n    from fedarena.core.a import y",
            "bench/core/d.py": "from fedarena.core.a import z",
        },
    )
    assert circles_of_files(tree) == [["fedarena.core.a", "fedarena.core.b", "fedarena.core.c"]]
    assert circles_of_folders(tree) == []


def test_a_circle_of_folders_without_a_circle_of_files_is_found(tmp_path: Path) -> None:
    tree = written(
        tmp_path,
        {
            "bench/goals/__init__.py": "",
            "bench/goals/goal.py": "from fedarena.goals.metrics.auc import area",
            "bench/goals/metrics/auc.py": "",
            "bench/goals/metrics/roc.py": "from fedarena.goals.names import NAMES",
            "bench/goals/names.py": "",
        },
    )
    assert circles_of_files(tree) == []
    assert circles_of_folders(tree) == [["fedarena.goals", "fedarena.goals.metrics"]]


def test_a_stray_file_of_bench_is_found(tmp_path: Path) -> None:
    written(tmp_path, {"bench/__init__.py": "", "bench/helpers.py": "", "bench/core/helpers.py": ""})
    assert stray_files(tmp_path) == ["helpers.py"]


def test_a_method_that_the_harness_names_is_found(tmp_path: Path) -> None:
    source = '''
        """About dbcl."""

        def is_plain(name):
            """Whether it is dbcl."""
            return name == "dbcl" or f"{name}+krum" or name in ("multi-krum", "dbcl-like", "my_dbcl")

        EXAMPLE = "take krum"
    '''
    written(tmp_path, {"bench/core/a.py": source, "bench/reproduce/b.py": "x = 'dbcl'", "attacks/c.py": "x = 'dbcl'"})

    def places(allowed: dict[tuple[str, str], str]) -> list[str]:
        return list(named_methods(tmp_path, ["dbcl", "krum", "multi-krum"], allowed, outside=("bench/reproduce/",)))

    dbcl, krum = ["bench/core/a.py:6 names dbcl"], ["bench/core/a.py:6 names krum", "bench/core/a.py:8 names krum"]
    multi = ["bench/core/a.py:6 names multi-krum"]
    assert sorted(places({})) == sorted(dbcl + krum + multi)
    assert sorted(places({("bench/core/a.py", "krum"): "an example"})) == dbcl + multi
    assert sorted(places({("bench/core/other.py", "krum"): "an example"})) == sorted(dbcl + krum + multi)


def test_a_docstring_is_no_literal(tmp_path: Path) -> None:
    written(tmp_path, {"bench/core/a.py": '"""One."""\nX = "two"\n"""Three."""\n'})
    assert [(one.text, one.line) for one in literals(tmp_path, "bench")] == [("two", 2)]


def test_a_function_s_lines_leave_out_its_decorators(tmp_path: Path) -> None:
    source = """
        @decorator
        def outer(
            a,
        ):
            async def inner(): ...
            return inner
    """
    written(tmp_path, {"defenses/a.py": source})
    assert {one.name: one.lines for one in functions(tmp_path)} == {"outer": 5, "inner": 1}
