"""What changed in a clean run besides its utility: what the protocol promises, and what crosses the wire."""

from __future__ import annotations

import math

from fedarena.board.board import CleanRun
from fedarena.board.gate.change import Change, fewer_seeds, lost_scores, status_change

MORE_BYTES = 0.01
"""A larger increase of the bytes on the wire, as a share, is a finding."""


def clean_run_changes(base: CleanRun, new: CleanRun | None) -> list[Change]:
    """The changes of a clean run besides its utility; `new` is None where the new board does not have the run."""
    if base.status == "missing":
        return []
    if new is None or new.status == "missing":
        return [Change("missing: the new board does not have this clean run")]
    lost = set(base.utility) - set(new.utility)
    missing = set(base.accuracy) - set(new.accuracy)
    changes = [*fewer_seeds(set(base.accuracy), set(new.accuracy)), *lost_scores(lost - missing, "utility")]
    if base.status != new.status:
        changes.append(status_change(base.status, new.status, new.reason))
    # A run without a measurement promises nothing and costs nothing, and its status is reported already.
    if base.accuracy and new.accuracy:
        changes += [
            *_guarantees(base.guarantees, new.guarantees),
            *_bytes("up", base.bytes_up, new.bytes_up),
            *_bytes("down", base.bytes_down, new.bytes_down),
            *_warnings(base.warnings, new.warnings),
        ]
    return changes


def _guarantees(base: dict[str, float], new: dict[str, float]) -> list[Change]:
    changes = []
    for name in sorted({*base, *new}):
        was, now = base.get(name), new.get(name)
        # Rounding that differs between machines changes no promise.
        if was is None or now is None or not math.isclose(was, now, rel_tol=1e-9):
            changes.append(Change(f"another guarantee: {name} {_number(was)} → {_number(now)}"))
    return changes


def _bytes(direction: str, was: float, now: float) -> list[Change]:
    what = f"bytes {direction} per client and round: {was:,.0f} → {now:,.0f}"
    if was > 0 and now == 0:
        return [Change(f"no {what}")]
    if now > was * (1 + MORE_BYTES):
        return [Change(f"more {what}")]
    return [Change(f"fewer {what}", finding=False)] if now < was * (1 - MORE_BYTES) else []


def _warnings(base: tuple[str, ...], new: tuple[str, ...]) -> list[Change]:
    """Warnings that came or went; a finding where only one board has any, since their words may be improved."""
    finding = bool(base) != bool(new)
    return [
        *(Change(f"new warning: {warning}", finding) for warning in new if warning not in base),
        *(Change(f"warning gone: {warning}", finding) for warning in base if warning not in new),
    ]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
