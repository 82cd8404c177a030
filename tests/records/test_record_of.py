"""What a record says of the machine and the code that measured it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from helpers.paths import ROOT

from fedarena.records import record_of


def test_records_hold_the_commit_of_a_checkout() -> None:
    commit = record_of.environment()["commit"]
    in_checkout = Path(record_of.__file__).resolve().is_relative_to(ROOT / "bench") and (ROOT / ".git").exists()
    if not in_checkout:
        pytest.skip("what is tested is installed")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert commit is not None
    assert head.stdout.startswith(commit.removesuffix("-dirty").rpartition("-g")[2])


def test_records_name_the_kernels_that_computed() -> None:
    environment = record_of.environment()
    capability, *libraries = environment["kernels"].split("; ")
    assert capability == torch.backends.cpu.get_cpu_capability()
    assert any(library.startswith(("mkl", "openblas", "blis")) for library in libraries)
    assert environment["processor"]
