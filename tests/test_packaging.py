"""pyproject.toml names every package of the tree; the wheel holds nothing else."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def test_every_folder_with_modules_is_a_listed_package() -> None:
    found = set()
    for package, folder in SETUP["package-dir"].items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *parts)))
    assert found == set(SETUP["packages"])


def test_every_package_has_an_init() -> None:
    folders = sorted(SETUP["package-dir"].items(), key=lambda item: -len(item[0]))
    for package in SETUP["packages"]:
        base, folder = next((b, f) for b, f in folders if package == b or package.startswith(f"{b}."))
        inner = package.removeprefix(base).strip(".").replace(".", "/")
        assert (ROOT / folder / inner / "__init__.py").exists(), package


def test_types_are_shipped() -> None:
    assert (ROOT / "bench" / "py.typed").exists()
    assert "py.typed" in SETUP["package-data"]["fedarena"]
