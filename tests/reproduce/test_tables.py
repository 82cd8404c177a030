"""Which parts of a table are meant by a name, or by how names begin."""

from __future__ import annotations

import pytest

from fedarena.reproduce.tables import named

NAMES = ["cliques, Gossip", "cliques, Gossip, as in the code", "iid, Gossip"]


@pytest.mark.parametrize(
    ("only", "meant"),
    [
        ("", NAMES),
        ("cliques", NAMES[:2]),
        ("cliques, Gossip", NAMES[:1]),  # a whole name, with which another one begins
        ("cliques, Gossip,", NAMES[1:2]),
        ("Gossip", []),
    ],
)
def test_a_whole_name_means_one_part_and_a_beginning_all_that_begin_so(only: str, meant: list[str]) -> None:
    assert named(NAMES, only) == meant
