"""Messages of the masking protocol, as bytes: a list of (client, body), the client in 4 bytes, bodies of one size."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.defenses.secure import key_agreement, shamir

INDEX = 4
"""Bytes of a client's number."""

KEYS = 2 * key_agreement.SIZE
"""Bytes of a client's public keys: c, then s."""

BOX = 2 * shamir.SHARE + 16
"""Bytes of two encrypted shares, of s's private key and of b, and of their tag."""

MASKING = b"fedarena secure mask"
"""Label of the keys from which masks are made."""

SEALING = b"fedarena secure share"
"""Label of the keys that shares are encrypted with."""


def pack(entries: Mapping[int, bytes]) -> bytes:
    """Bodies by client → one message. Empty bodies: a list of clients."""
    return b"".join(client.to_bytes(INDEX, "little") + body for client, body in entries.items())


def unpack(message: bytes, size: int) -> dict[int, bytes]:
    """One message → bodies of `size` bytes by client."""
    step = INDEX + size
    entries = (message[i : i + step] for i in range(0, len(message), step))
    return {int.from_bytes(entry[:INDEX], "little"): entry[INDEX:] for entry in entries}
