"""Memory that tensors free stays with the process, and the environment may say otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import torch
from fedarena.core import freed_memory
print(freed_memory.keep() if {keep} else False)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(10_000_000)
before = faults()
for _ in range(20):
    torch.ones(10_000_000)
print(faults() - before)
"""


def faults(keep: bool, **environment: str) -> tuple[bool, int]:
    """Whether memory is kept, and how often the kernel hands pages out to twenty tensors of 40 MB, after ten others."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(keep=keep)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    kept, number = done.stdout.split()
    return kept == "True", int(number)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_a_large_tensor_gets_the_pages_of_the_one_before() -> None:
    kept, few = faults(keep=True)
    if not kept:
        pytest.skip("this glibc keeps no blocks of more than 32 MB, or the environment says how memory is kept")
    _, many = faults(keep=False)
    assert 10 * few < many


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("MALLOC_MMAP_THRESHOLD_", "131072"),
        ("GLIBC_TUNABLES", "glibc.malloc.check=0"),
    ],
)
def test_the_environment_has_the_last_word(name: str, value: str) -> None:
    kept, _ = faults(keep=True, **{name: value})
    assert not kept
