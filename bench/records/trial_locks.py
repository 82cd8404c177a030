"""Locks on trials, by which processes that write into one folder do not measure the same trial at the same time.

A lock is on one byte of the file `.claims` in the folder; its position follows from the trial's key. The operating
system releases it when its process ends, in whatever way, so that no lock outlives its run. The file stays empty. Locks
only save work: a result is the same whichever process measures it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = ".claims"


class TrialLocks:
    """The locks of this process on the trials of a folder.

    Two objects in one process do not see each other's locks. On a system without such locks every lock is granted.
    """

    def __init__(self, folder: Path) -> None:
        self._held: set[str] = set()
        try:
            self._file: int | None = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            self._file = None

    def take(self, keys: list[str]) -> bool:
        """Lock all of these trials, or none of them and return False: another process measures one of them."""
        fresh = [key for key in keys if key not in self._held]
        for i, key in enumerate(fresh):
            if not self._lock(key):
                self.give_back(fresh[:i])
                return False
            self._held.add(key)
        return True

    def give_back(self, keys: list[str]) -> None:
        """Release the locks on these trials."""
        for key in keys:
            if key in self._held:
                self._held.remove(key)
                self._unlock(key)

    def close(self) -> None:
        """Release all locks."""
        if self._file is not None:
            os.close(self._file)
        self._file = None
        self._held.clear()

    def _lock(self, key: str) -> bool:
        if self._file is None or sys.platform == "win32":
            return True
        import fcntl

        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):  # POSIX allows either for a lock that is taken
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def _unlock(self, key: str) -> None:
        if self._file is None or sys.platform == "win32":
            return
        import fcntl

        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(key))


def _place(key: str) -> int:
    """The position of a trial's byte in the file, below 2^56."""
    return int(key[:14], 16)
