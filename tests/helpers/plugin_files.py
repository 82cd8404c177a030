"""Plug-in files that are in use for a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fedarena.core import plugin_file, registry
from fedarena.goals import of_attack


@contextmanager
def session() -> Iterator[None]:
    """Objects of one's own that the block uses are unknown after it."""
    try:
        yield
    finally:
        registry._held.clear()
        registry.registries.cache_clear()
        of_attack.cache_clear()


@contextmanager
def forgotten() -> Iterator[None]:
    """What the block uses is not in use after it."""
    path, modules, before = [*sys.path], {*sys.modules}, os.environ.get(plugin_file.VARIABLE)
    try:
        yield
    finally:
        new = {*sys.path} - {*path}
        sys.path[:] = path
        for name in {*sys.modules} - modules:
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") in new:
                del sys.modules[name]
        os.environ.pop(plugin_file.VARIABLE, None)
        if before is not None:
            os.environ[plugin_file.VARIABLE] = before
        plugin_file.claims_of.cache_clear()
        registry.registries.cache_clear()
