"""The wheel holds every module and data file of the tree, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest
from helpers.paths import ROOT

FOLDERS = {"bench": "fedarena", "attacks": "fedarena/attacks", "defenses": "fedarena/defenses"}
FOLDERS |= {"datasets": "fedarena/datasets"}
CONFIGURATION = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel that is built from a copy of the tree, without the distribution's metadata."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in CONFIGURATION:
        shutil.copy(ROOT / name, folder / "tree" / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(folder / "tree")], check=True)
    (built,) = folder.glob("*.whl")
    return {name for name in zipfile.ZipFile(built).namelist() if ".dist-info/" not in name}


def tree() -> set[str]:
    """The same names, read from the folders of the repository."""
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: set[str]) -> None:
    assert wheel == tree()


def test_the_wheel_holds_suites_pages_and_types(wheel: set[str]) -> None:
    assert {"fedarena/py.typed", "fedarena/suites/smoke.toml"} <= wheel
    assert any(name.startswith("fedarena/board/page/") for name in wheel)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
