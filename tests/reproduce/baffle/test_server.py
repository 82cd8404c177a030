"""The table of BAFFLE's two servers: what it measures, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.reproduce.baffle import server
from fedarena.reproduce.baffle.server import DIRECTIONS, PIECES, SERVERS, TABLE, draw, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_each_server_has_every_number_of_differences() -> None:
    assert TABLES["baffle/server"] == server.__name__
    assert {f"{server}, K = 8" for server in SERVERS} <= set(TABLE.pieces)
    assert {f"honest, K = {k}" for k in DIRECTIONS} <= set(TABLE.pieces)


@pytest.mark.parametrize(
    "network", ["16", pytest.param("", id="the table's", marks=pytest.mark.slow)]
)  # how many pixels K numbers give does not depend on the width
@pytest.mark.parametrize(("piece", "least", "most"), [("malicious, K = 64", 0.9, 1.0), ("malicious, K = 8", 0.0, 0.5)])
def test_as_many_numbers_as_pixels_give_the_digit(
    piece: str, least: float, most: float, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threat, attack, settings = SERVERS["malicious"]
    if network:
        monkeypatch.setitem(server.SERVERS, "malicious", (threat, attack, {**settings, "model": {"widths": network}}))
    (row,) = measure(PIECES[piece], Machine(), 0, lambda share, text: None)
    assert least <= row["identified"] <= most
    assert (row["psnr"] > 40) == (least > 0)


def test_the_picture_has_what_was_measured(tmp_path: Path) -> None:
    rows = [{"server": one, "K": k, "identified": k / 256, "psnr": 10.0 + k} for one in SERVERS for k in DIRECTIONS[:2]]
    draw([*rows, {"server": "honest", "K": 64, "identified": None, "psnr": None}], tmp_path / "servers.png")
    assert (tmp_path / "servers.png").stat().st_size > 5000
