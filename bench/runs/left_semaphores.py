"""Semaphores that killed runs left behind.

Loky's semaphores have names, which are files on Linux. A process of loky removes them when a run ends, unless it is
killed together with the run.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/dev/shm")
NAME = re.compile(r"sem\.loky-([0-9]+)-.+")
"""The name of the file, with the number of the process that made the semaphore."""
OLD = 3600.0
"""Seconds after which they are removed. Containers may share the folder, and not see each other's processes."""


def remove_left_semaphores(folder: Path = FOLDER) -> None:
    """Remove old semaphores of this user whose process is gone."""
    with suppress(OSError):  # there is no such folder, or it cannot be read
        for file in os.scandir(folder):
            if (match := NAME.fullmatch(file.name)) is None:
                continue
            with suppress(OSError):  # another run removes it at the same time
                told = file.stat(follow_symlinks=False)
                if told.st_uid == os.getuid() and time.time() - told.st_mtime > OLD and _ended(int(match[1])):
                    os.unlink(file.path)


def _ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
