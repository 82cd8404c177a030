"""Memory that tensors free stays with the process, where the C library is glibc.

By itself glibc hands every freed block of 32 MB or more back to the kernel, and what is free at the end of the heap.
The kernel fills the pages with zeros when the next round asks for them. Rounds that make the same large tensors again
and again may spend more time on that than on arithmetic.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""What mallopt(3) calls these options."""
AT_MOST = 2**29
"""The most bytes at the end of the heap that a process keeps though they are free."""
HEAP = 2**28
"""Blocks of fewer bytes lie in the heap; larger ones are asked of the kernel each time."""


@cache
def keep() -> bool:
    """Keep freed memory in this process from now on, unless the environment says how; whether it does.

    A glibc before 2.35 takes no threshold of more than 32 MB, and keeps its habits.
    """
    said = {"GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"}
    if platform.libc_ver()[0] != "glibc" or said.intersection(os.environ):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_THRESHOLD, HEAP) and mallopt(M_TRIM_THRESHOLD, AT_MOST))
