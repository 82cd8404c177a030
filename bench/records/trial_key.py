"""The key of a trial and of a record: a hash of everything that determines the result.

The hashed layout is fixed and has a version of its own, `KEY_LAYOUT`. It stays when the schema of records gives fields
other names, so that a trial that was measured under an earlier schema is found again.

A trial is one federation attacked as one threat. It gives one record for each reading, the way in which the party looks
at what it saw. The readings are known only afterwards; so a trial's key leaves the reading out, and a record's has it.
"""

from __future__ import annotations

from typing import Any

from fedarena.core.files import digest
from fedarena.records.schema import Identity, ProblemSetting, Record

KEY_LAYOUT = 6
"""The version of the hashed layout: schema 6 of records, with its names of fields."""


def trial_key(identity: Identity) -> str:
    """The key of a trial: 20 hex digits of the sha256 of its identity."""
    return digest(_hashed(identity), 20)


def key_of(record: Record) -> str:
    """The key of a record: 20 hex digits of the sha256 of its trial's identity and its reading."""
    return digest({**_hashed(record), "reading": record["reading"]}, 20)


def hashed_problem(problem: ProblemSetting) -> dict[str, Any]:
    """A problem in the layout that is hashed."""
    layout: dict[str, Any] = {**problem}
    layout["belief"] = layout.pop("assumed_corrupted")
    return layout


def _hashed(identity: Identity) -> dict[str, Any]:
    hashed: dict[str, Any] = {
        "schema": KEY_LAYOUT,
        "problem": hashed_problem(identity["problem"]),
        "defense": identity["defense"],
        "attack": identity["attack"],
        "party": identity["party"],
        "form": identity["form"],
        "knows": identity["attacker_knowledge"],
        "seed": identity["seed"],
        "options": identity["options"],
        "versions": identity["versions"],
    }
    if "secret" in identity:
        hashed["secret"] = identity["secret"]
    if "other_rounds" in identity:
        hashed["other_rounds"] = identity["other_rounds"]
    return hashed
