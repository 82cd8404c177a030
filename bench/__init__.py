"""FedArena: defenses of federated learning meet attacks, limited to what they would really see.

`import fedarena as fa` has the Python API (`fedarena.api`): `fa.run`, `fa.load_board`, `fa.aggregate`, … The names are
loaded when they are used, so that the import itself is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedarena import testing
    from fedarena.api import (
        Difference,
        Leaderboard,
        Records,
        Results,
        aggregate,
        compare,
        explain,
        invert,
        load_board,
        methods,
        read_records,
        run,
        run_suite,
    )
    from fedarena.core.errors import UserError
    from fedarena.goals import own_results as metrics

__version__ = "0.1.0"

__all__ = [
    "Difference",
    "Leaderboard",
    "Records",
    "Results",
    "UserError",
    "aggregate",
    "compare",
    "explain",
    "invert",
    "load_board",
    "methods",
    "metrics",
    "read_records",
    "run",
    "run_suite",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fedarena' has no attribute {name!r}")
    if name == "metrics":
        from fedarena.goals import own_results

        return own_results
    if name == "testing":
        return import_module("fedarena.testing")
    from fedarena import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
