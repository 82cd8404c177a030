"""Small messages from worker processes on this machine to the process that started them.

A queue of `multiprocessing.Manager` would need a further process, which goes on when its parent is killed. A socket
does not: when the parent is gone, the worker's next message fails, and the worker ends.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

Address = tuple[Any, bytes]
"""The address that messages go to, and the key."""

_open: dict[Address, Connection] = {}
"""The connections of this process, one for each mailbox, for as long as the process lives."""

WATCH = 1.0
"""Seconds between two checks whether the parent still lives."""


@contextmanager
def mailbox(read: Callable[[Any], object]) -> Iterator[Address]:
    """An address to `post` to; until it is closed, `read` is called with every item, from a thread for each sender."""
    key = secrets.token_bytes(16)
    listener = Listener(("localhost", 0), authkey=key, backlog=64)
    closing = threading.Event()

    def listen(connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                item = connection.recv()
                if closing.is_set():
                    return
                read(item)

    def accept() -> None:
        while not closing.is_set():
            with suppress(EOFError, OSError, AuthenticationError):
                connection = listener.accept()
                threading.Thread(target=listen, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.address, key
    finally:
        closing.set()
        with suppress(OSError), socket.create_connection(listener.address, timeout=1):
            pass  # wakes the thread that accepts
        listener.close()


def post(address: Address | None, item: Any) -> None:
    """Send an item. Nothing is sent where the address is None, or where the other process is gone."""
    if address is None:
        return
    try:
        if address not in _open:
            _open[address] = Client(address[0], authkey=address[1])
        _open[address].send(item)
    except (OSError, EOFError):
        _open.pop(address, None)


def end_with_parent(parent: int) -> None:
    """End this worker process soon after its parent has ended, whatever it is doing.

    Args:
        parent: the process that the worker works for.
    """

    def watch() -> None:
        # Compared with the given process and not with the present parent, since the former may have ended already.
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
