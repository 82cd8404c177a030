"""Floats as integers modulo 2^bits, so that masks can be uniform and sums exact.

    encode(v) = round(v / step) mod 2^bits          |v| ≤ bound; half to even
    decode(w) = step · (w as a signed integer)
    step      = the least power of two with  n · ⌈bound / step⌉ < 2^(bits − 1)

A sum of up to n encodings therefore never wraps, and decodes to exactly the sum of the decoded values:
Σ_c |q_c| < 2^(bits−1), and scaling by a power of two loses nothing. The step lies between 2·n·bound / 2^bits and about
twice that; an encoding is off by at most step/2, and a sum of n by n·step/2 (about step·√(n/12) as a rule).

With 64 bits a total of more than 53 significant bits is rounded once, to the nearest float64.

The bound is public. A bound taken from the round's vectors would show the server the largest value in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedarena.contracts.secure_sum import TooLarge
from fedarena.defenses.secure.stream import Words


@dataclass(frozen=True)
class FixedPoint:
    """An encoding for sums of up to n vectors.

    Attributes:
        bits: 32 or 64. bound: largest |value| that a client can send. n: the number of clients.
    """

    bits: int
    bound: float
    n: int

    @property
    def step(self) -> float:
        """The distance between neighbouring values."""
        exponent = math.frexp(self.n * self.bound)[1] - self.bits
        while self.n * math.ceil(math.ldexp(self.bound, -exponent)) >= 2 ** (self.bits - 1):
            exponent += 1
        return math.ldexp(1.0, exponent)

    def require(self, largest: float) -> None:
        """Raise TooLarge where the largest |value| of a round is beyond the bound, or not finite."""
        if not largest <= self.bound:
            raise TooLarge(
                f"secure pairwise-masks: option 'bound' is {self.bound:g}, allowed: at least the largest |value| that "
                f"a client sends, which was {largest:g} (values are weighted by the client's share of the samples)"
            )

    def encode(self, values: NDArray[np.float64]) -> Words:
        """Words shaped like the values. Raises TooLarge for values beyond the bound, and for those not finite."""
        self.require(float(np.abs(values).max(initial=0.0)))  # NaN if any value is
        integers: NDArray[np.int64] = np.rint(values / self.step).astype(np.int64)
        words: Words = integers.view(np.uint64).astype(f"<u{self.bits // 8}")  # the low 32 bits: modulo 2^32
        return words

    def decode(self, words: Words) -> NDArray[np.float64]:
        """Values of encodings, or of their sum modulo 2^bits."""
        return np.asarray(signed(words, self.bits).astype(np.float64) * self.step)


def signed(words: Words, bits: int) -> NDArray[np.signedinteger[Any]]:
    """The same bits in two's complement."""
    return words.view(f"<i{bits // 8}")
