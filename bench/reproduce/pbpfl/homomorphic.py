"""Sums of encrypted vectors by CKKS (Cheon, Kim, Kim, Song 2017), with the library TenSEAL: what PBPFL is set against.

All clients share a secret key, as in Phong et al. 2018, whom the PBPFL paper names. The server has the public key. It
adds ciphertexts and can open none. The ring degree is N = 4096, with two primes of 54 bits, of which one is the data's.
For such a degree the homomorphic encryption standard (Albrecht et al. 2018) allows 109 bits of modulus at 128 bits of
security. That is enough for sums, and smaller than what products need. A ciphertext holds N/2 = 2048 numbers with 40
bits behind the point. Encryption draws from the operating system, so that bytes, times and errors vary between calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.secure_sum import Exchange, SecureSum, TooLarge
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation.one_round import Clock

DEGREE = 4096
PRIME_BITS = (54, 54)
SCALE_BITS = 40
SLOTS = DEGREE // 2
LIMIT = 2.0 ** (PRIME_BITS[0] - SCALE_BITS - 2)
"""The largest |value|: half of what the data's prime holds."""

Ciphertexts = list[bytes]
"""A vector in pieces of `SLOTS` numbers, as sent."""


class CKKS:
    """Keys of one federation.

    Raises:
        UserError: TenSEAL is not installed.
    """

    def __init__(self) -> None:
        try:
            import tenseal
        except ImportError:
            raise UserError(
                'table pbpfl/encryption needs TenSEAL, which is not installed: pip install "fedarena[he]"'
            ) from None
        self._library: Any = tenseal
        self._clients = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=list(PRIME_BITS), n_threads=1
        )
        self._clients.global_scale = 2.0**SCALE_BITS
        public = self._clients.serialize(save_secret_key=False, save_galois_keys=False, save_relin_keys=False)
        self.server: Any = tenseal.context_from(public, n_threads=1)
        self.key_bytes = len(public)

    def encrypt(self, vector: Tensor) -> Ciphertexts:
        """A client's upload. Raises TooLarge for values beyond `LIMIT`, which would wrap around."""
        if not (vector.abs() <= LIMIT).all():
            raise TooLarge(f"ckks: an upload has values beyond ±{LIMIT:g}, which {PRIME_BITS[0]} bits do not hold")
        parts = vector.detach().cpu().double().split(SLOTS)
        return [self._library.ckks_vector(self._clients, part.tolist()).serialize() for part in parts]

    def add(self, uploads: Sequence[Ciphertexts]) -> Ciphertexts:
        """The server's work: the encrypted sum of all uploads, piece by piece."""
        sums = []
        for pieces in zip(*uploads, strict=True):
            total, *others = (self._library.ckks_vector_from(self.server, piece) for piece in pieces)
            for other in others:
                total += other
            sums.append(total.serialize())
        return sums

    def decrypt(self, total: Ciphertexts) -> Tensor:
        """A client's reading of the encrypted sum [d], in double precision."""
        pieces = [self._library.ckks_vector_from(self._clients, piece).decrypt() for piece in total]
        return torch.tensor([value for piece in pieces for value in piece], dtype=torch.float64)


class EncryptedSum(SecureSum):
    """Clients encrypt, the server adds, and every client decrypts the sum. No client drops out.

    Attributes:
        seconds: CPU seconds of the last sum: `encrypt` and `decrypt` of one client (means), `add` of the server.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.keys = CKKS()
        self.seconds: dict[str, float] = {}

    @property
    def limit(self) -> float:
        return LIMIT

    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        """The messages are bytes, which `wire` does not hold: they count as `extra_up` and `extra_down`."""
        n = len(vectors)
        encrypting, adding, decrypting = (Clock(torch.device("cpu")) for _ in range(3))
        with encrypting:
            uploads = [self.keys.encrypt(vector) for vector in vectors]
        with adding:
            total = self.keys.add(uploads)
        with decrypting:
            opened = [self.keys.decrypt(total) for _ in range(n)]
        self.seconds = {
            "encrypt": encrypting.seconds / n,
            "add": adding.seconds,
            "decrypt": decrypting.seconds / n,
        }
        return Exchange(
            wire=None,
            total=opened[0].to(vectors),
            survivors=tuple(range(n)),
            extra_up=sum(size(upload) for upload in uploads) / n,
            extra_down=float(size(total)),
        )


def size(message: Ciphertexts) -> int:
    """Bytes of a message."""
    return sum(len(piece) for piece in message)
