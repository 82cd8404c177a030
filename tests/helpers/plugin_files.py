"""Methods of one's own that are in use for a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fedarena.core import plugin_file, registry
from fedarena.core.method_caches import forget_methods


@contextmanager
def forgotten() -> Iterator[None]:
    """Objects that the block hands over, and plug-in files that it names, are unknown after it."""
    modules, path, files, held = {*sys.modules}, [*sys.path], os.environ.get(plugin_file.VARIABLE), {**registry._held}
    try:
        yield
    finally:
        if (sys.path, os.environ.get(plugin_file.VARIABLE), registry._held) != (path, files, held):
            _forget({*sys.path} - {*path}, {*sys.modules} - modules)
            sys.path[:] = path
            os.environ.pop(plugin_file.VARIABLE, None)
            if files is not None:
                os.environ[plugin_file.VARIABLE] = files
            registry._held.clear()
            registry._held.update(held)


def _forget(folders: set[str], modules: set[str]) -> None:
    """Forget what was imported from these folders, and what was kept of the methods that were known."""
    for name in modules:
        if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") in folders:
            del sys.modules[name]
    plugin_file._read.clear()
    forget_methods()
