"""The defense that is none: what every other one is compared with."""

from __future__ import annotations

BASELINE = "fedavg"
"""Its name. It stands here alone, so that no other file of the harness names a method."""
