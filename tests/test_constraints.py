"""constraints.txt pins what the package and its tests need, in versions that pyproject.toml allows."""

from __future__ import annotations

import re

import pytest
from helpers.pins import LINES, PINS, PROJECT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("test", "docs", "dev", "byzfl", "breaching")
WANTED = [
    Requirement(text)
    for text in [*PROJECT["dependencies"], *(t for extra in EXTRAS for t in PROJECT["optional-dependencies"][extra])]
    if not text.startswith("fedarena[")
]


def test_a_line_is_a_name_and_one_public_version() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert list(PINS) == sorted(PINS)
    assert len(PINS) == len(LINES)


@pytest.mark.parametrize("requirement", WANTED, ids=str)
def test_a_requirement_is_pinned_to_a_version_that_it_allows(requirement: Requirement) -> None:
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])
