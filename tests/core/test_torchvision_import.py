"""torchvision can be imported next to whatever torch is there, once or many times."""

from __future__ import annotations

import subprocess
import sys

import pytest


def assert_runs(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_torchvision_imports_and_its_transforms_work() -> None:
    assert_runs(
        "from fedarena.core.torchvision_import import import_torchvision as load\n"
        "assert load() is load()\n"
        "import torch, torchvision\n"
        "from torchvision.transforms.functional import hflip\n"
        "assert hflip(torch.arange(4).view(1, 1, 4)).flatten().tolist() == [3, 2, 1, 0]"
    )


def test_operators_that_exist_are_left_alone() -> None:
    assert_runs(
        "import torch\n"
        "from fedarena.core import torchvision_import\n"
        "torchvision_import._load_compiled()\n"
        "compiled = hasattr(torch.ops.torchvision, 'nms')\n"  # defined twice, they would end the process
        "real = None if compiled else torch.library.Library('torchvision', 'DEF')\n"
        "signature = '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor'\n"
        "for name in () if compiled else ('nms', 'qnms'):\n"
        "    real.define(name + signature)\n"
        "    real.impl(name, lambda dets, scores, iou_threshold: scores + 1, 'CPU')\n"
        "torchvision_import._load_compiled = lambda: None\n"
        "assert torchvision_import.declare_operators() is None\n"
        "import torchvision\n"
        "kept = torch.ops.torchvision.nms(torch.zeros(2, 4), torch.ones(2), 0.5)\n"
        "assert kept.tolist() == ([0, 1] if compiled else [2, 2])"
    )


def test_a_stranger_to_the_operators_is_told_so() -> None:
    import torch

    from fedarena.core.torchvision_import import import_torchvision

    torchvision = import_torchvision()
    if torchvision.extension._has_ops():
        pytest.skip("torchvision's compiled operators fit this torch")
    with pytest.raises(RuntimeError, match="custom C"):
        torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
