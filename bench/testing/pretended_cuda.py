"""A CUDA device that is not there, on which code that mixes devices fails as it would on a real one.

Tensors "on cuda" are ordinary ones whose storage is marked. A function mode takes the word cuda out of what is asked
for, and gives it back as `.device`; a dispatch mode passes the mark on from what an operator reads to what it makes,
and refuses operators that read both kinds, as PyTorch does: a tensor without dimensions may come from the CPU, and so
may the indices of a tensor on the device. Arithmetic is the CPU's, bit for bit.

    with pretend_cuda():
        a = torch.ones(3, device="cuda")
        a + torch.ones(3)               # RuntimeError: Expected all tensors to be on the same device
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import Tensor, UntypedStorage
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
MIXED = "Expected all tensors to be on the same device"

BY_INDEX = ("aten.index.Tensor", "aten.index_put", "aten._index_put_impl_", "aten._unsafe_index")
"""Their indices may lie on the CPU."""
CROSSING = ("aten.copy_", "aten._foreach_copy_")
"""They read one device and write another."""
PRODUCTS = tuple(f"aten.{name}." for name in ("mm", "bmm", "mv", "dot", "addmm", "addmv", "baddbmm"))
"""On a GPU, products of matrices and vectors are there for floating-point and complex numbers only."""


class Marks:
    """Where storages are. A weak reference keeps an address from being given out anew.

    What no call of Python asked for, such as zeros that a backward pass begins with, is anywhere until it meets another
    tensor: PyTorch makes it on the device of what it is for, which cannot be seen from here.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageWeakRef, bool | None]] = {}

    def of(self, t: Tensor) -> bool | None:
        """Whether it is on the device; None: anywhere."""
        return self.at(_bare(t).untyped_storage()._cdata)

    def at(self, key: int) -> bool | None:
        """As `of`, by the storage's key, which is its address."""
        known = self._known.get(key)
        return False if known is None else known[1]

    def has(self, t: Tensor) -> bool:
        return self.of(t) is True

    def put(self, t: Tensor, there: bool | None) -> None:
        self.put_storage(_bare(t).untyped_storage(), there)

    def put_storage(self, storage: UntypedStorage, there: bool | None) -> None:
        if there is False:
            self._known.pop(storage._cdata, None)
        else:
            self._known[storage._cdata] = StorageWeakRef(storage), there


def _bare(t: Tensor) -> Tensor:
    """What `vmap` and `grad` have wrapped."""
    while torch._C._functorch.is_functorch_wrapped_tensor(t):
        t = torch._C._functorch.get_unwrapped(t)
    return t


def _tensors(found: Any) -> list[Tensor]:
    """The tensors among arguments or results. PyTorch's `tree_leaves` takes most of a test's time."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, dict):
        found = found.values()
    elif not isinstance(found, list | tuple):
        return []
    tensors: list[Tensor] = []
    for one in found:
        if isinstance(one, Tensor):
            tensors.append(one)
        elif isinstance(one, list | tuple | dict):
            tensors += _tensors(one)
    return tensors


def _is_cuda(device: Any) -> bool:
    return device is not None and not isinstance(device, int) and torch.device(device).type == "cuda"


class _Operators(TorchDispatchMode):
    """Below autograd and `vmap`: every operator, with plain tensors."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.marks = marks

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled, and what PyTorch wraps around a mode for its compiler takes time at every operator."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        read = [t for t in _tensors([*args, *kwargs.values()] if kwargs else args) if t.is_cpu]
        keys = [t.untyped_storage()._cdata for t in read]
        places = [self.marks.at(key) for key in keys]
        there = True in places
        if there:
            self._check(func, args, read, places)
        out = func(*args, **kwargs)
        found = there or (None if False not in places else False)
        for t in _tensors(out):
            if t.is_cpu:
                storage = t.untyped_storage()
                key = storage._cdata
                is_open = key not in keys or places[keys.index(key)] is None
                if is_open and self.marks.at(key) not in (True, found):
                    self.marks.put_storage(storage, found)
        return out

    def _check(self, func: Any, args: Sequence[Any], read: Sequence[Tensor], places: Sequence[bool | None]) -> None:
        """Raise RuntimeError for products of integers, and where something that is read beside is on the CPU."""
        kind = _kind(func)
        if kind == "crossing":
            return
        if kind == "product" and not (read[0].is_floating_point() or read[0].is_complex()):
            raise RuntimeError(f'"{func}" not implemented for {read[0].dtype} on cuda')
        if False not in places:
            return
        free: set[int] = set()
        if kind == "by index" and self.marks.of(args[0]) is not False:
            free = {id(t) for t in _tensors(args[1])}
        strangers = [
            t for t, place in zip(read, places, strict=True) if place is False and t.dim() and id(t) not in free
        ]
        if strangers:
            shapes = ", ".join(str(tuple(t.shape)) for t in strangers)
            raise RuntimeError(f"{MIXED}, but {func} got a tensor of shape {shapes} on the CPU")


@cache
def _kind(func: Any) -> str:
    """What is peculiar about an operator."""
    kinds = {"crossing": CROSSING, "by index": BY_INDEX, "product": PRODUCTS}
    return next((kind for kind, names in kinds.items() if str(func).startswith(names)), "")


ASKED_OF_A_TENSOR = {
    Tensor.device.__get__,
    Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
    Tensor.new_tensor,
    Tensor.cpu,
    Tensor.cuda,
    Tensor.to,
    Tensor.__reduce_ex__,
    Tensor.numpy,
    Tensor.__array__,
}
"""What a tensor on the device answers otherwise than one on the CPU."""


class _Calls(TorchFunctionMode):
    """Above autograd: what Python asks for."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self.marks = marks

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in ASKED_OF_A_TENSOR:
            return self._made(func, args, kwargs) if "device" in kwargs else self._called(func, args, kwargs)
        there = self.marks.has(args[0])
        if func == Tensor.device.__get__:
            real = func(*args)
            return CUDA if real.type == "cpu" and there else real
        if func == Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return there
        if func is Tensor.new_tensor:
            made = func(*args, **{k: v for k, v in kwargs.items() if k != "device"})
            self.marks.put(made, _is_cuda(kwargs["device"]) if "device" in kwargs else self.marks.of(args[0]))
            return made
        if func is Tensor.cpu:
            return self._moved(args[0], CPU)
        if func is Tensor.cuda:
            return self._moved(args[0], CUDA)
        if func is Tensor.to:
            return self._to(args, kwargs)
        if not there:
            return self._called(func, args, kwargs)
        if func is Tensor.__reduce_ex__:
            make, given = func(*args, **kwargs)  # type: ignore[no-untyped-call]
            return _made_on_cuda, (make, given)
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def _called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What a function gives that names no device."""
        made = func(*args, **kwargs)
        if not isinstance(made, Tensor) or not made.is_cpu:
            return made
        if self.marks.of(made) is None and not _tensors([*args, *kwargs.values()]):
            self.marks.put(made, False)
        generator = kwargs.get("generator")
        if generator is not None and self.marks.has(made):
            raise RuntimeError(f"Expected a 'cuda' device type for generator but found 'cpu' ({func.__name__})")
        return made

    def _made(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A tensor that is made on a device by name."""
        asked = kwargs["device"]
        if asked is None or torch.device(asked).type == "meta":
            return func(*args, **kwargs)
        there = _is_cuda(asked)
        if there and kwargs.get("generator") is not None:
            raise RuntimeError(f"Expected a 'cuda' device type for generator but found 'cpu' ({func.__name__})")
        with torch._C.DisableTorchFunction():
            made = func(*args, **{**kwargs, "device": CPU})
        if isinstance(made, Tensor):
            self.marks.put(made, there)
        return made

    def _to(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
        """`Tensor.to` with a device, a type, another tensor, or several of them."""
        t, rest = args[0], list(args[1:])
        place: torch.device | None = None
        for i, one in enumerate(rest):
            if isinstance(one, Tensor):
                place = CUDA if self.marks.has(one) else CPU
                rest[i] = one.dtype
            elif isinstance(one, torch.device | str):
                place = CUDA if _is_cuda(one) else torch.device(one)
                rest[i] = None
        if kwargs.get("device") is not None:
            place = CUDA if _is_cuda(kwargs["device"]) else torch.device(kwargs["device"])
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        if place is not None and place.type == "meta":
            moved: Tensor = t.to(*args[1:], **kwargs)
            return moved
        rest = [one for one in rest if one is not None and not isinstance(one, bool)]
        if rest or kwargs.get("dtype") is not None or "memory_format" in kwargs or kwargs.get("copy"):
            t = Tensor.to(t, *rest, **kwargs)
        return t if place is None else self._moved(t, place)

    def _moved(self, t: Tensor, place: torch.device) -> Tensor:
        there = place.type == "cuda"
        if self.marks.of(t) is there:
            return t
        copy = t.clone()
        self.marks.put(copy, there)
        return copy


def _made_on_cuda(make: Callable[..., Tensor], given: Sequence[Any]) -> Tensor:
    """A tensor of the device, from its pickle."""
    return make(*given).to("cuda")


@contextmanager
def pretend_cuda() -> Iterator[None]:
    """This process seems to have a CUDA device meanwhile."""
    marks, parse = Marks(), torch._C._nn._parse_to

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        """`Module.to` asks a tensor for its device past the modes."""
        found = parse(*args, **kwargs)
        return (CUDA, *found[1:]) if args and isinstance(args[0], Tensor) and marks.has(args[0]) else found

    with (
        mock.patch("torch._C._nn._parse_to", parse_to),
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.cuda.synchronize"),
        _Calls(marks),
        _Operators(marks),
    ):
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(mode=False)  # which a device asks for, of the CPU too
