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
        read_transcript,
        run,
        run_suite,
    )
    from fedarena.core.errors import UserError
    from fedarena.goals import own_results as metrics
    from fedarena.runs.short_methods import defense, poisoning, privacy_attack, rule

__version__ = "0.1.0"

__all__ = [
    "Difference",
    "Leaderboard",
    "Records",
    "Results",
    "UserError",
    "aggregate",
    "compare",
    "defense",
    "explain",
    "invert",
    "load_board",
    "methods",
    "metrics",
    "poisoning",
    "privacy_attack",
    "read_records",
    "read_transcript",
    "rule",
    "run",
    "run_suite",
    "testing",
]


MODULES = {"metrics": "fedarena.goals.own_results", "testing": "fedarena.testing"}
"""Names of whole modules."""
ELSEWHERE = {
    "UserError": "fedarena.core.errors",
    **dict.fromkeys(("defense", "poisoning", "privacy_attack", "rule"), "fedarena.runs.short_methods"),
}
"""Names that are not of `fedarena.api`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fedarena' has no attribute {name!r}")
    if name in MODULES:
        return import_module(MODULES[name])
    return getattr(import_module(ELSEWHERE.get(name, "fedarena.api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
