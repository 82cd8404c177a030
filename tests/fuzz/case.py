"""One input of the fuzzer, as plain data, and the ground that inputs stand on."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.judge import Fault, Outcome, counted, judge

RESULTS, SUITE, BOARD = "results", "tiny.toml", "board.json"
"""What lies in a ground, and, as copies, in the folders of cases."""


@dataclass(frozen=True)
class Ground:
    """A finished suite, its file and its board, which are copied for cases to change.

    Attributes:
        folder: has RESULTS, SUITE and BOARD.
        where: new folders of cases are made here.
    """

    folder: Path
    where: Path


@dataclass(frozen=True)
class Case:
    """A command in a folder of its own.

    Attributes:
        argv: the words of the command.
        nonsense: what is senseless about the input, so that it must not be accepted; empty where that cannot be said.
    """

    argv: tuple[str, ...]
    nonsense: str = ""

    printed = ""
    """What a file of the case prints itself, and `bench` may pass on to stderr."""

    def lay(self, folder: Path, ground: Ground) -> None:
        """Write the files of the case."""

    def given(self) -> Sequence[str]:
        """Paths outside of the folder that the command line names."""
        return ()

    def wrong(self, outcome: Outcome, folder: Path) -> str:
        """What is wrong with an outcome that has no other fault; empty where nothing is."""
        return f"{self.nonsense} was accepted" if self.nonsense and outcome.accepted else ""

    def then(self, outcome: Outcome, folder: Path) -> tuple[str, ...]:
        """A command that must take what this one wrote; none where there is no such."""
        return ()


def tried(case: Case, ground: Ground) -> tuple[list[Fault], Counter[str]]:
    """Run a case in a new folder: its faults, and the columns of the table that it counts in."""
    folder = ground.where / "case"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    case.lay(folder, ground)
    outcome = judge(case.argv, folder, case.given(), case.printed)
    faults = list(outcome.faults)
    if not faults and (why := case.wrong(outcome, folder)):
        faults.append(Fault("nonsense", why, outcome.out[:500] + outcome.err[:500]))
    if not faults and (argv := case.then(outcome, folder)):
        after = judge(argv, folder)
        faults += after.faults
        if after.code == 2 and not faults:
            faults.append(Fault("nonsense", f"`bench {argv[0]}` refuses what bench itself wrote: {after.err.strip()}"))
    return faults, counted(outcome, faults)
