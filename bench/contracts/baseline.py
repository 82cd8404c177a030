"""The baseline: the federation without a defense, with which every defense is compared."""

from __future__ import annotations

BASELINE = "fedavg"
"""The registry name of the baseline. No other file of the harness names a method."""
