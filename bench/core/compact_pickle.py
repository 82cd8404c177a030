"""Pickles that hold each tensor's own numbers. A plain pickle of a slice would hold the whole tensor: others' data."""

from __future__ import annotations

import io
import pickle
from typing import Any

from torch import Tensor

from fedarena.core.tensors import reduce_tensor


def dumps(value: Any) -> bytes:
    """The value as a pickle."""
    file = io.BytesIO()
    _Compact(file).dump(value)
    return file.getvalue()


class _Compact(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        own = obj.clone() if obj.untyped_storage().nbytes() > obj.numel() * obj.element_size() else obj
        return reduce_tensor(own) if type(own) is Tensor else own.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
