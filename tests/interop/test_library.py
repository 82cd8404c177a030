"""What all libraries have in common."""

from __future__ import annotations

import pytest

from fedarena.core.errors import UserError
from fedarena.interop.library import release, release_number


def test_a_library_that_is_not_there_is_named_with_its_extra() -> None:
    with pytest.raises(UserError, match=r"^x:Y needs the package no-such-one, which is not installed: .*fedarena\[x\]"):
        release("no-such-one", "x", "x:Y")


def test_a_later_release_has_a_larger_number() -> None:
    releases = ["0", "0.1.2", "0.1.10", "0.2", "1.0.0rc1", "1.42.3"]
    assert sorted(releases, key=release_number) == releases
