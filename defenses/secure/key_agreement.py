"""Key agreement: X25519 (RFC 7748) and HKDF-SHA256 (RFC 5869).

    secret(a, B) = a·B = b·A
    key          = HKDF(secret, salt = none, info = label ‖ the two public keys, sorted)     32 bytes

The public keys are bound into the key, as RFC 7748, Section 6.1 advises; labels separate keys of different use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SIZE = 32
"""Bytes of a private key, of a public key and of an agreed key."""


@dataclass(frozen=True)
class KeyPair:
    """A private key, and its public key as sent [32 bytes]."""

    private: X25519PrivateKey
    public: bytes

    @classmethod
    def of(cls, raw: bytes) -> KeyPair:
        """The pair of 32 secret bytes."""
        private = X25519PrivateKey.from_private_bytes(raw)
        return cls(private, private.public_key().public_bytes_raw())


Agree = Callable[[KeyPair, bytes, bytes], bytes]
"""Own pair, the other's public key, label → the key of both."""


def agree(own: KeyPair, other: bytes, label: bytes) -> bytes:
    """The key [32 bytes] that the holder of `other`'s private key finds too.

    Raises:
        ValueError: `other` is no public key, or one of the few of low order, which would give a known secret.
    """
    secret = own.private.exchange(X25519PublicKey.from_public_bytes(other))
    return derive(secret, None, label + b"".join(sorted((own.public, other))))


def derive(secret: bytes, salt: bytes | None, info: bytes) -> bytes:
    """HKDF-SHA256, 32 bytes."""
    return HKDF(SHA256(), SIZE, salt, info).derive(secret)


class Once:
    """`agree` for a simulation that plays both ends: one end computes the key, and the other looks it up.

    The keys are the same as without it, and the time is half. An end gets only keys that it could compute itself,
    because it looks them up with its own pair.
    """

    def __init__(self) -> None:
        self._keys: dict[tuple[frozenset[bytes], bytes], bytes] = {}

    def __call__(self, own: KeyPair, other: bytes, label: bytes) -> bytes:
        pair = frozenset((own.public, other)), label
        if pair not in self._keys:
            self._keys[pair] = agree(own, other, label)
        return self._keys[pair]
