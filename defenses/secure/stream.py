"""A mask from a key: the ChaCha20 key stream (RFC 8439, Section 2.4) read as little-endian words."""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

Words = NDArray[np.unsignedinteger[Any]]
"""Integers modulo 2^32 or 2^64; numpy's unsigned arithmetic on arrays wraps."""

NONCE = bytes(16)
"""Block counter 0 and nonce 0: every key masks one vector only."""


def words(key: bytes, count: int, bits: int) -> Words:
    """`count` words of `bits` (32 or 64) bits; key: 32 bytes, never used for a second mask."""
    stream = Cipher(ChaCha20(key, NONCE), mode=None).encryptor().update(bytes(count * bits // 8))
    return read(stream, bits)


def read(message: bytes, bits: int) -> Words:
    """Bytes as little-endian words."""
    return np.frombuffer(message, np.dtype(f"<u{bits // 8}"))
