"""The progress of suites where no terminal shows a bar."""

from __future__ import annotations

import pytest

from fedarena.cli.output import suite_progress
from fedarena.cli.output.suite_progress import progress


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(suite_progress.time, "monotonic", lambda: now[0])
    with progress(False, "trials") as tell:
        for done in range(1, 11):
            now[0] += 10
            tell(done, 10, f"krum {done}", {3: None, 6: 0.0}.get(done, 200.0))
    assert capsys.readouterr().err.splitlines() == [
        "trials: 3/10, krum 3",
        "trials: 6/10, longer than expected, krum 6",
        "trials: 9/10, 3 min left, krum 9",
        "trials: 10/10",
    ]


def test_a_quiet_run_and_one_without_progress_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(True, "trials") as tell:
        tell(1, 1, "krum", None)
    with progress(False, "trials"):
        pass
    assert capsys.readouterr().err == ""
