"""The loop of a fresh process, which answers requests until nobody can ask any more."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from typing import Any, BinaryIO

from fedarena.core.errors import describe

Say = Callable[[Any], None]
"""Sends a message, which JSON can hold, before the answer."""

_serving = False


def is_fresh() -> bool:
    """Whether this is a fresh process."""
    return _serving


def serve(work: Callable[[Any, Say], bytes]) -> None:
    """Answer requests, in the fresh process. What it prints goes to stderr, and it ends with its parent."""
    global _serving
    _serving = True
    line, source = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(source, requests), daemon=True).start()

    def send(kind: str, content: Any, more: bytes = b"") -> None:
        try:
            line.write(json.dumps([kind, content]).encode() + b"\n" + more)
            line.flush()
        except BrokenPipeError:  # the parent has ended
            os._exit(1)

    _compute_as(*pickle.loads(requests.get()))
    from fedarena.core.global_generators import seeded_generators

    with seeded_generators(0):  # which a user's method may draw from
        while True:
            try:
                answer = work(pickle.loads(requests.get()), lambda message: send("message", message))
                send("answer", len(answer), answer)
            except Exception as error:
                send("error", describe(error))


def _receive(source: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    """Take requests, and end this process when its parent has ended: nobody else holds the line's other end."""
    while len(head := source.read(8)) == 8:
        requests.put(source.read(int.from_bytes(head, "little")))
    os._exit(1)


def _compute_as(threads: int, flush: bool, device: str) -> None:
    import torch

    from fedarena.core.tensors import find_device

    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    find_device(device)


if __name__ == "__main__":
    # Others import this module by its name, and ask that one whether the process is fresh.
    import_module("fedarena.core.request_loop").serve(import_module(sys.argv[1]).work)
