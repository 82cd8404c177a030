"""The options with which published tables were measured, where the usual ones have changed since."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.federation import compose
from fedarena.federation.spec import MethodSpec

OPTIONS: Mapping[str, Mapping[str, str]] = {"dbcl": {"hash": "countsketch"}}
"""By defense."""

ACCOUNTING: Mapping[str, str] = {"accounting": "renyi"}
"""The options of `dp-sgd` where it searches for σ."""


def defense(name: str) -> MethodSpec:
    """A defense with its options of then."""
    return compose.parse_defense(name, dict(OPTIONS.get(name, {})))
