"""pyproject.toml names every package of the tree; the wheel holds nothing else."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


DATA = set(SETUP["package-data"]) - {"fedarena"}
"""Folders of files without modules."""


def folder_of(package: str) -> Path:
    folders = sorted(SETUP["package-dir"].items(), key=lambda item: -len(item[0]))
    base, folder = next((b, f) for b, f in folders if package == b or package.startswith(f"{b}."))
    return ROOT / folder / package.removeprefix(base).strip(".").replace(".", "/")


def test_every_folder_with_modules_is_a_listed_package() -> None:
    found = set()
    for package, folder in SETUP["package-dir"].items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *parts)))
    assert found == set(SETUP["packages"]) - DATA


def test_every_package_has_an_init_or_files_that_are_shipped() -> None:
    for package in SETUP["packages"]:
        if package in DATA:
            assert any(list(folder_of(package).glob(p)) for p in SETUP["package-data"][package]), package
        else:
            assert (folder_of(package) / "__init__.py").exists(), package


def test_types_are_shipped() -> None:
    assert (ROOT / "bench" / "py.typed").exists()
    assert "py.typed" in SETUP["package-data"]["fedarena"]
