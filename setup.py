"""Four folders of the tree become one import package; its sub-packages are discovered, never listed by hand.

What is built holds the commit that it is built from, if that is known (`fedarena.core.source_commit`).
"""

from pathlib import Path
from runpy import run_path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOTS = {
    "fedarena": "bench",
    "fedarena.attacks": "attacks",
    "fedarena.defenses": "defenses",
    "fedarena.datasets": "datasets",
}


def write_commit(folder):
    """Write the commit into the folder of a built package."""
    source = run_path(str(Path(__file__).parent / "bench/core/source_commit.py"))
    if (commit := source["source_commit"]()) is not None:
        (Path(folder) / source["NAME"]).write_text(f"{commit}\n", encoding="utf-8")


class BuildWithCommit(build_py):
    """Not for an editable install, which runs from the tree itself."""

    def run(self):
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib) / "fedarena")


class SourcesWithCommit(sdist):
    """A source distribution, which has no git."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir) / "bench")


setup(
    cmdclass={"build_py": BuildWithCommit, "sdist": SourcesWithCommit},
    package_dir=ROOTS,
    # Namespace packages, since folders of data files (suites, the page of a board) have no __init__.py.
    packages=[
        name
        for package, folder in ROOTS.items()
        for name in (package, *(f"{package}.{found}" for found in find_namespace_packages(folder)))
        if "__pycache__" not in name
    ],
)
