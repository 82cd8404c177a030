"""Other libraries of federated learning: their classes as methods here, and methods of this package inside them."""

from __future__ import annotations

from fedarena.core.registry import Library

LIBRARIES = {
    "byzfl": Library("aggregator", "fedarena.interop.byzfl:rule_of", "byzfl"),
    "flower": Library("defense", "fedarena.interop.flower_card:strategy_of", "flwr"),
}
"""Prefix of names LIBRARY:CLASS → the library."""
