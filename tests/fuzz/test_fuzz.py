"""The fuzzer: a few cases of each kind, always the same; `pytest -m slow tests/fuzz` tries many others."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable

import pytest
from fuzz import command_lines, data_files, plugins, results, suite_files
from fuzz.campaign import campaign, wanted_cases
from fuzz.case import BOARD, RESULTS, SUITE, Case, Ground, tried
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Cases = Callable[[Ground], "st.SearchStrategy[Case]"]
KINDS: dict[str, tuple[int, Cases]] = {
    "command lines": (60, lambda ground: command_lines.cases()),
    "suites": (60, lambda ground: suite_files.cases(tomllib.loads((ground.folder / SUITE).read_text()))),
    "results": (20, lambda ground: results.folders(ground.folder / RESULTS)),
    "boards": (30, lambda ground: results.boards(json.loads((ground.folder / BOARD).read_text()))),
    "data files": (50, lambda ground: data_files.cases()),
    "plug-ins": (15, lambda ground: plugins.cases()),
}
"""Kind → how many cases of it are always tried, and what draws them."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("undrawn")
def test_bench_takes_some_odd_inputs_well(kind: str, ground: Ground) -> None:
    count, cases = KINDS[kind]

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(cases(ground))
    def hold(case: Case) -> None:
        faults, _ = tried(case, ground)
        assert not faults, "\n".join(f"{fault.sort}: {fault.told}\n{fault.more}" for fault in faults)

    hold()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bench_takes_many_odd_inputs_well(kind: str, ground: Ground) -> None:
    found = campaign(KINDS[kind][1](ground), ground, wanted_cases())
    print(found.row(kind))
    assert not found.smallest, found.told()
