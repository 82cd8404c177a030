"""Other libraries of federated learning: their classes as methods here, and methods of this package inside them."""

from __future__ import annotations

from fedarena.core.card import Kind

LIBRARIES: dict[str, tuple[Kind, str]] = {
    "byzfl": ("aggregator", "fedarena.interop.byzfl:rule_of"),
    "flower": ("defense", "fedarena.interop.flower_card:strategy_of"),
}
"""Prefix of names LIBRARY:CLASS → the kind of method that its classes are, and the function of such a name that makes
the method (`fedarena.core.registry.from_library`)."""
