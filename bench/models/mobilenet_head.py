"""MobileNetV2's features (Sandler et al. 2018, torchvision), frozen, and one trained dense layer: BAFFLE's transfer
learning. With 10 classes 12,810 parameters are trained, 1280·10 + 10.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import import_torchvision
from fedarena.datasets import checksum, folders
from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.cards.mobilenet_head import Options
from fedarena.models.preprocess import head

FEATURES = 1280
STANDARD = "mobilenet_v2-b0353104.pth"
"""torchvision's file of ImageNet weights (IMAGENET1K_V1); its name ends in the first digits of its sha256."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, by colour channel."""


class Frozen(nn.Module):
    """MobileNetV2's features, which are not trained: x [n, 1 or 3, h, w] → net((x − MEAN)/STD).

    They are held in a tuple, which `named_parameters`, `named_modules` and `functional_call` do not search. Moving
    the module to a device or type moves them, too, and `train` leaves them in evaluation mode.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self._held = (net.eval().requires_grad_(False),)

    def forward(self, x: Tensor) -> Tensor:
        """Features, in the type of `x`; the network may have another type."""
        (net,) = self._held
        like = next(net.parameters())
        mean, std = (like.new_tensor(values).reshape(3, 1, 1) for values in (MEAN, STD))
        # One channel broadcasts to three.
        out: Tensor = net((x.to(like.dtype) - mean) / std)
        return out.to(x.dtype)

    def __getstate__(self) -> dict[str, Any]:
        """The state as tensors alone: another process may not be able to import torchvision's classes."""
        return {**self.__dict__, "_held": self._held[0].state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        net = structure()
        net.load_state_dict(state["_held"], assign=True)  # keeps their device and type
        super().__setstate__({**state, "_held": (net.eval().requires_grad_(False),)})  # type: ignore[no-untyped-call]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Frozen:
        self._held[0]._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self


class MobileNetHead(Architecture):
    """224 → 7 pixels a side at the end of the features, 32 → 1; 1280 features after pooling."""

    options: Options

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.options.weights != "random":
            return ()
        return ("the frozen MobileNet features are random, not pretrained",)

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        front, shape = head("mobilenet-head", input_shape, 0.0, 1.0, self.options.size)
        channels, _, _ = image_shape("mobilenet-head", shape, smallest=32)
        if channels not in (1, 3):
            raise UserError(f"option 'model' is mobilenet-head, which takes 1 or 3 channels; inputs have {channels}")
        layers: OrderedDict[str, nn.Module] = OrderedDict(front)
        layers["features"] = Frozen(features(self.options.weights))
        layers["pool"], layers["flatten"] = nn.AdaptiveAvgPool2d(1), nn.Flatten()
        layers["out"] = blank(lambda: nn.Linear(FEATURES, n_classes))
        return nn.Sequential(layers)


def features(weights: str) -> nn.Module:
    """MobileNetV2 without its classifier: [n, 3, h, w] → [n, 1280, ⌈h/32⌉, ⌈w/32⌉].

    Args:
        weights: `pretrained`, `random`, or the path of a state dict.

    Raises:
        UserError: a file that is absent or holds something else.
    """
    net = structure().to_empty(device="cpu")
    if weights == "random":
        fill(net, Rng(0).child("mobilenet-head", "features").torch())
        return net
    path = standard_file() if weights == "pretrained" else Path(weights).expanduser()
    if not path.is_file():
        raise UserError(
            f"model mobilenet-head: option 'weights' is {weights!r}, allowed: pretrained, random, or a file that exists"
        )
    load(net, path)
    return net


def structure() -> nn.Module:
    """The features without storage; made on the meta device, they draw nothing from the global generator."""
    mobilenet = import_torchvision().models.mobilenet_v2
    with torch.device("meta"):
        net: nn.Module = mobilenet().features
    return net


def standard_file() -> Path:
    """The file of `weights=pretrained`. Raises UserError when it is absent or not what its name says."""
    hub = Path(torch.hub.get_dir()) / "checkpoints" / STANDARD
    path = folders.find((STANDARD,)) or hub
    if not path.is_file():
        places = " or ".join(map(str, (*folders.search_path(), hub.parent)))
        raise UserError(
            f"model mobilenet-head: option 'weights' is pretrained, but {STANDARD} is absent: put torchvision's file "
            f"into {places}, or set model.weights=random for features that were never trained"
        )
    known = STANDARD.removesuffix(".pth").rpartition("-")[2]
    sha256 = checksum.digest(path)
    if not sha256.startswith(known):
        raise UserError(f"weights file {path} has sha256 {sha256}, expected one that begins with {known}: remove it")
    return path


def load(net: nn.Module, path: Path) -> None:
    """Fill the features from torchvision's state dict of the whole model. Raises UserError."""
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        mine = {k.removeprefix("features."): v for k, v in content.items() if k.startswith("features.")}
        net.load_state_dict(mine)
    except Exception as error:  # a damaged or foreign file fails in many ways
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"weights file {path} is no state dict of torchvision's mobilenet_v2 ({why})") from error


def fill(net: nn.Module, generator: torch.Generator) -> None:
    """Draw filters N(0, 2/fan_in) (He et al. 2015), and set batch normalisation to the identity."""
    with torch.no_grad():
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d):
                layer.weight.normal_(0, math.sqrt(2 / layer.weight[0].numel()), generator=generator)
            elif isinstance(layer, nn.BatchNorm2d):
                layer.reset_parameters()  # mean 0, variance 1, weight 1, bias 0
