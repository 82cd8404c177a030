"""Encrypted sums are sums that the server cannot read, and the table that sets PBPFL beside them."""

from __future__ import annotations

import builtins
from dataclasses import replace

import pytest
import torch

from fedarena.cli import main
from fedarena.contracts.secure_sum import TooLarge
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import encryption
from fedarena.reproduce.pbpfl.homomorphic import CKKS, LIMIT, SLOTS, EncryptedSum, size


@pytest.fixture(scope="module")
def library():
    return pytest.importorskip("tenseal", reason="no TenSEAL: pip install fedarena[he]")


@pytest.fixture(scope="module")
def keys(library):
    return CKKS()


def vectors(n, d, scale=1.0):
    return scale * torch.randn(n, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)


@pytest.mark.parametrize("d", [1, SLOTS, SLOTS + 1, 3 * SLOTS - 7])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
def test_the_decrypted_sum_is_the_plain_one(keys, d, scale):
    rows = vectors(5, d, scale)
    total = keys.add([keys.encrypt(row) for row in rows])
    opened = keys.decrypt(total)
    assert opened.shape == (d,)
    assert (opened - rows.sum(0)).abs().max() < 1e-7  # noise of encryption; 2^-40 of rounding is far below it
    assert len(total) == -(-d // SLOTS)


def test_the_largest_values_do_not_wrap_around_and_larger_ones_are_refused(keys):
    most = torch.tensor([LIMIT, -LIMIT, 0.0])
    assert torch.allclose(keys.decrypt(keys.encrypt(most)), most.double(), rtol=0, atol=1e-4)
    for beyond in (1.01 * LIMIT, float("nan"), float("inf")):
        with pytest.raises(TooLarge, match="ckks: an upload has values beyond"):
            keys.encrypt(torch.tensor([0.0, beyond]))


def test_the_server_that_adds_cannot_decrypt(keys, library):
    total = keys.add([keys.encrypt(row) for row in vectors(2, 10)])
    assert not keys.server.has_secret_key()
    with pytest.raises(ValueError, match="secret"):
        library.ckks_vector_from(keys.server, total[0]).decrypt()
    others = CKKS().decrypt(total)
    assert (others - vectors(2, 10).sum(0)).abs().max() > 1  # another federation's key opens nothing


def test_equal_vectors_are_encrypted_to_other_bytes(keys):
    row = vectors(1, 10)[0]
    assert keys.encrypt(row) != keys.encrypt(row)


def test_bytes_and_seconds_of_a_sum_are_those_of_its_messages(library):
    secure = EncryptedSum()
    rows = vectors(3, SLOTS + 5).float()
    done = secure(rows, Rng(0))
    assert done.total.dtype == torch.float32
    assert torch.allclose(done.total, rows.sum(0), atol=1e-5)
    assert (done.wire, done.survivors) == (None, (0, 1, 2))
    one = size(secure.keys.encrypt(rows[0]))
    assert done.extra_up == pytest.approx(one, rel=0.02)
    assert done.extra_down == pytest.approx(one, rel=0.02)
    assert one > 20 * rows[0].numel()  # bytes
    assert all(secure.seconds[part] > 0 for part in ("encrypt", "add", "decrypt"))


def test_the_table_sets_all_methods_side_by_side(library):
    network = replace(
        encryption.BY_TITLE["MLP-3 (code), bank-additional"], data="breast-cancer", batch=32, k=4, repetitions=1
    )
    told: list[float] = []
    rows = encryption.measure(network, Machine(), 0, lambda share, text: told.append(share))
    found = {row["method"]: row for row in rows}
    assert list(found) == list(encryption.HIDES)
    assert told == sorted(told)
    assert 0 <= told[0] <= told[-1] < 1
    d = found["fedavg"]["parameters"]
    assert d == 30 * 50 + 2 * 50 * 50 + 50
    assert found["fedavg"]["bytes_up"] == found["fedavg"]["bytes_down"] == 4 * d
    assert found["pbpfl"]["bytes_up"] == 3 * 4 * d
    assert found["fedavg+ckks"]["bytes_up"] > 5 * found["fedavg"]["bytes_up"]
    assert found["fedavg+ckks"]["bytes_down"] == pytest.approx(found["fedavg+ckks"]["bytes_up"], rel=0.02)
    assert all(row["error"] < 1e-4 for row in rows)
    assert found["fedavg"]["error"] == 0
    assert all(row["error"] > 0 for row in rows[1:])
    assert all(row["seconds"] > 0 for row in rows)
    assert [name for name, row in found.items() if row["encrypt_s"] is not None] == ["fedavg+ckks"]
    assert set(encryption.MEASURED) < set(rows[0])


@pytest.fixture
def without_library(monkeypatch):
    usual = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "tenseal":
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_without_the_library_one_line_says_what_to_install(without_library, capsys, tmp_path):
    with pytest.raises(UserError, match=r'TenSEAL, which is not installed: pip install "fedarena\[he\]"'):
        CKKS()
    table = ["reproduce", "pbpfl/encryption", "--only", "MLP", "--jobs", "1", "--quiet", "--out", str(tmp_path)]
    network = replace(encryption.NETWORKS[0], data="breast-cancer", batch=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encryption.BY_TITLE, network.title, network)
        assert main(table) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "TenSEAL, which is not installed" in said
