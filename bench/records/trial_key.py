"""The key of a trial and of a record: a hash of everything that determines the result.

A trial is one federation attacked as one threat. It gives one record for each reading, the way in which the party looks
at what it saw. The readings are known only afterwards; so a trial's key leaves the reading out, and a record's has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedarena.core.files import digest

IDENTITY = (
    *("schema", "problem", "defense", "attack", "party", "form", "knows", "reading", "seed", "options", "versions"),
)


def key_of(record: Mapping[str, Any]) -> str:
    """20 hex digits of the sha256 of the identity, in canonical JSON."""
    return digest({name: record[name] for name in IDENTITY}, 20)


def trial_key(who: Mapping[str, Any]) -> str:
    """A trial's key, of its identity: 20 hex digits."""
    return digest(who, 20)
