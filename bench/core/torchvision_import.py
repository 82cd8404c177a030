"""Import torchvision beside any build of torch.

torchvision's wheel carries compiled operators. Where they cannot be loaded (a wheel built for CUDA next
to a CPU-only torch), its Python part still works, except that on import it attaches shapes to the
operators `nms` and `qnms`, which then do not exist. Declaring their schemas, without an implementation,
is all that the import needs; calling them fails as it should.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_OPERATORS = ("nms", "qnms")


@cache
def declare_operators() -> torch.library.Library | None:
    """Declare torchvision's operator schemas unless they exist; call before `import torchvision`.

    Returns:
        The declaration, kept alive by the cache; None when the compiled operators are there.
    """
    import torch

    _load_compiled()
    missing = [name for name in _OPERATORS if not hasattr(torch.ops.torchvision, name)]
    if not missing:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in missing:
        library.define(f"{name}{_NMS}")
    return library


def import_torchvision() -> ModuleType:
    """The module torchvision."""
    declare_operators()
    return import_module("torchvision")


def _load_compiled() -> None:
    """Load torchvision's own operators if they fit this torch; its import would do the same."""
    import torch

    spec = find_spec("torchvision")  # finds the package without importing it
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for library in sorted(p for p in Path(folder).glob("_C.*") if p.suffix in (".so", ".pyd", ".dylib")):
            try:
                torch.ops.load_library(str(library))
            except OSError:
                continue
