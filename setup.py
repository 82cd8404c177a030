"""Four folders of the tree become one import package; its sub-packages are discovered, never listed by hand."""

from setuptools import find_namespace_packages, setup

ROOTS = {
    "fedarena": "bench",
    "fedarena.attacks": "attacks",
    "fedarena.defenses": "defenses",
    "fedarena.datasets": "datasets",
}

setup(
    package_dir=ROOTS,
    # Namespace packages, since folders of data files (suites, the page of a board) have no __init__.py.
    packages=[
        name
        for package, folder in ROOTS.items()
        for name in (package, *(f"{package}.{found}" for found in find_namespace_packages(folder)))
        if "__pycache__" not in name
    ],
)
