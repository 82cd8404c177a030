"""Originals and guesses as small PNG strips: a row of images in their own size."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

GAP = 2
"""Grey pixels between images."""

SHOWN = 6
"""Images of a strip, at most."""

SIDE = 32
"""Pixels of an image's longer side, at most; larger ones are averaged over whole blocks."""

Strip = npt.NDArray[np.float32]


def strip(images: Strip) -> bytes:
    """The first images [n, channels, height, width] in [0, 1] side by side; one channel as grey, three as colour.

    Raises:
        ValueError: what is given is no stack of pictures.
    """
    if images.ndim != 4 or not len(images) or images.shape[1] not in (1, 3):
        raise ValueError(f"expected [n, 1 or 3, height, width], got {list(images.shape)}")
    shown = _shrink(images[:SHOWN])
    n, channels, height, width = shown.shape
    row = np.full((height, n * (width + GAP) - GAP, channels), 0.5)
    for i, image in enumerate(shown):
        row[:, i * (width + GAP) : i * (width + GAP) + width] = image.transpose(1, 2, 0)
    return png(np.rint(255 * np.clip(row, 0, 1)).astype(np.uint8))


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """[height, width, 1 or 3] as a PNG with 8 bits a channel (W3C PNG 3rd edition, sections 5 and 11), unfiltered."""
    height, width, channels = pixels.shape
    colour = 0 if channels == 1 else 2
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _shrink(images: Strip) -> npt.NDArray[np.float64]:
    """Averaged over blocks of k × k pixels, k the least with which the longer side is within SIDE."""
    n, channels, height, width = images.shape
    k = -(-max(height, width) // SIDE)
    high, wide = max(1, height // k), max(1, width // k)
    threats = images[:, :, : high * k, : wide * k].astype(np.float64)
    if k == 1:
        return threats
    blocks: npt.NDArray[np.float64] = threats.reshape(n, channels, high, min(k, height), wide, min(k, width)).mean(
        axis=(3, 5)
    )
    return blocks
