"""Peak memory of a computation, counted from its tensors.

The operating system's figure depends on the allocator, on other threads and on what ran before. What is counted here is
the same on every run and every device: the bytes of all tensors made during the call that are alive at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from fedarena.core.garbage import no_collection

T = TypeVar("T")


def peak_bytes(fn: Callable[[], T]) -> tuple[T, int]:
    """Run `fn` and return its result and the peak of live tensor bytes.

    Counted are the storages of all tensors that operations return during the call, autograd's saved ones among them,
    each once however many views it has. Not counted are tensors that existed before, and scratch space that a kernel
    frees before it returns. Works through autograd and `torch.func`. Costs tens of microseconds an operation.
    """
    # The collector could free reference cycles at any time, so it is off during the call. Older garbage is not
    # counted, and collecting it would take longer than a small training.
    with no_collection():
        try:
            with _Tracker() as tracker:
                result = fn()
            return result, tracker.peak
        finally:
            tracker.close()


class _Tracker(TorchDispatchMode):
    """Adds the bytes of each new storage when an operation returns it, and takes them off when it dies."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._live = 0
        self._known: dict[int, weakref.finalize[Any, Any]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import its compiler, which takes a second, only to keep it away from here."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        for given in tree_iter((args, kwargs)):
            self._see(given, new=False)
        out = func(*args, **kwargs)
        for result in tree_iter(out):
            self._see(result, new=True)
        self.peak = max(self.peak, self._live)
        return out

    def close(self) -> None:
        """Let go of what is still alive."""
        for watch in self._known.values():
            watch.detach()
        self._known.clear()

    def _see(self, value: Any, new: bool) -> None:
        """Record a tensor's storage. A storage that is first seen as an argument existed before and counts 0 bytes."""
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return
        storage = value.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = storage.nbytes() if new else 0
        self._live += size
        self._known[key] = weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._live -= size
        del self._known[key]
