"""Caches of what is known about methods. They are emptied together when a method comes, goes or changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_empty: list[Callable[[], object]] = []


def method_cache(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` for a function whose answers depend on the methods that are known, and on their code."""
    cached = cache(function)
    on_change(cached.cache_clear)
    return cast("Callable[P, T]", cached)


def on_change(empty: Callable[[], object]) -> None:
    """Have a function called whenever methods change."""
    _empty.append(empty)


def forget_methods() -> None:
    """Empty all caches: from now on methods are looked up and loaded anew."""
    for empty in _empty:
        empty()
