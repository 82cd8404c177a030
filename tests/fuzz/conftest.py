"""The ground of the fuzzer: a tiny suite that was run, its file and its board."""

from __future__ import annotations

import pytest
from fuzz.case import BOARD, RESULTS, SUITE, Ground
from helpers.suite import POISON, READ, measure

from fedarena.board.load import load_board
from fedarena.board.published import to_json

TINY = f"""
title = "Tiny"
about = "Small enough to fuzz."
seeds = [0]
minutes = 1
{READ}{POISON}
[methods.dlg]
victims = 1
restarts = 1
iterations = 2

[training.dbcl]
lr = 0.2

[[matrix]]
problem = "read"
defenses = ["fedavg", "dbcl"]
attacks = ["last-layer-label", "dlg"]
parties = ["server"]
forms = ["paper"]

[[matrix]]
problem = "poison"
defenses = ["fedavg", "krum"]
attacks = ["sign-flip"]
knows = ["own"]
"""


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """The suite's results, file and board."""
    folder = tmp_path_factory.mktemp("ground")
    outcome = measure(TINY, folder)
    assert outcome.lost == {}
    (folder / "out").rename(folder / RESULTS)
    (folder / BOARD).write_text(to_json(load_board(folder / RESULTS)), encoding="utf-8")
    assert (folder / SUITE).is_file()
    return Ground(folder, tmp_path_factory.mktemp("cases"))
