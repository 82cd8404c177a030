"""Key agreement and masks against the RFCs."""

from __future__ import annotations

import numpy as np
import pytest

from fedarena.defenses.secure.key_agreement import KeyPair, Once, agree, derive
from fedarena.defenses.secure.stream import words

ALICE = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
BOB = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
SECRET = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_x25519_is_that_of_rfc_7748() -> None:
    """Section 6.1: the public keys, and that both ends derive their key from the secret K and the public keys."""
    alice, bob = (KeyPair.of(bytes.fromhex(k)) for k in (ALICE, BOB))
    assert (alice.public.hex(), bob.public.hex()) == (ALICE_PUBLIC, BOB_PUBLIC)
    info = b"label" + bytes.fromhex(ALICE_PUBLIC) + bytes.fromhex(BOB_PUBLIC)
    expected = derive(bytes.fromhex(SECRET), None, info)
    assert agree(alice, bob.public, b"label") == agree(bob, alice.public, b"label") == expected


def test_hkdf_is_that_of_rfc_5869() -> None:
    """Test case 1, whose first 32 bytes of output are ours."""
    found = derive(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)))
    assert found.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_labels_and_partners_part_the_keys() -> None:
    a, b, c = (KeyPair.of(bytes([i]) * 32) for i in (1, 2, 3))
    keys = {agree(a, b.public, b"one"), agree(a, b.public, b"two"), agree(a, c.public, b"one")}
    assert len(keys) == 3


def test_public_keys_of_low_order_are_refused() -> None:
    """RFC 7748, Section 6.1: the all-zero secret."""
    with pytest.raises(ValueError, match=r".*"):
        agree(KeyPair.of(b"\x01" * 32), bytes(32), b"label")


def test_computing_once_gives_the_same_keys() -> None:
    once, pairs = Once(), [KeyPair.of(bytes([i]) * 32) for i in (1, 2, 3)]
    for own in pairs:
        for other in pairs:
            for label in (b"one", b"two"):
                if own is not other:
                    assert once(own, other.public, label) == agree(own, other.public, label)


def test_masks_are_the_key_stream_of_rfc_8439() -> None:
    """Appendix A.1, test vector 1: key, nonce and counter 0."""
    stream = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    for bits in (32, 64):
        found = words(bytes(32), 512 // bits, bits)
        assert found.tobytes() == stream
        assert found.dtype == np.dtype(f"<u{bits // 8}")
        assert int(found[0]) == int.from_bytes(stream[: bits // 8], "little")
        np.testing.assert_array_equal(words(bytes(32), 1000, bits)[: len(found)], found)
    assert (words(b"\x01" + bytes(31), 16, 32) != words(bytes(32), 16, 32)).all()
