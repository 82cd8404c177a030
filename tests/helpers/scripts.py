"""Scripts of docs/ and benchmarks/, which are in no package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from helpers.paths import ROOT


def load_script(path: str) -> ModuleType:
    """The script at a path from the root, as a module; its `main` is not called."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
