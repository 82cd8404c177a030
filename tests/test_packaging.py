"""The wheel holds every module and data file of the tree and the commit, and nothing else."""

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
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[zipfile.ZipFile, str]:
    """A wheel that is built from the source distribution of a commit of the tree, and the commit."""
    folder = tmp_path_factory.mktemp("wheel")
    clone, sources = folder / "clone", folder / "sources"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in CONFIGURATION:
        shutil.copy(ROOT / name, clone / name)
    author = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True)
    sdist = f"from setuptools.build_meta import build_sdist; build_sdist({str(sources)!r})"
    subprocess.run([sys.executable, "-c", sdist], cwd=clone, check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), *map(str, sources.iterdir())], check=True)
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel), head.stdout


@pytest.fixture(scope="module")
def wheel(built: tuple[zipfile.ZipFile, str]) -> set[str]:
    """The names of the files in it, without the distribution's metadata."""
    return {name for name in built[0].namelist() if ".dist-info/" not in name}


def tree() -> set[str]:
    """The same names, read from the folders of the repository."""
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_tree_and_its_commit(built: tuple[zipfile.ZipFile, str], wheel: set[str]) -> None:
    assert wheel == tree() | {"fedarena/commit.txt"}
    assert built[1].startswith(built[0].read("fedarena/commit.txt").decode().strip())


def test_the_wheel_holds_suites_pages_and_types(wheel: set[str]) -> None:
    assert {"fedarena/py.typed", "fedarena/suites/smoke.toml"} <= wheel
    assert any(name.startswith("fedarena/board/page/") for name in wheel)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
