"""What neighbours learn of each other: the pieces, and that sketches hide what their rows say."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.paths import DATA

from fedarena.reproduce.dbcl.neighbours import MEASURED, PIECES, TABLE, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.table import Row


def row(piece: str, total: int = 5) -> Row:
    (found,) = measure(PIECES[piece], Machine(data_dir=DATA), 0, lambda share, text: None, total)
    assert set(MEASURED) <= set(found)
    return found


def test_a_larger_coalition_reads_more_of_a_sketch(tmp_path: Path) -> None:
    alone, all_four = (row(f"degree 4, s = d/2, {k} of the neighbours") for k in (1, 4))
    assert alone["cosine, paper"] < 0.3 < alone["cosine"] < all_four["cosine"]
    assert all_four["cosine"] > 0.99
    assert TABLE.draw is not None
    TABLE.draw([alone, all_four], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_what_sketches_cost_is_measured() -> None:
    found = row("trains: degree 4, s = d/2")
    assert 0 < found["worst node"] <= found["accuracy"] + 0.1
    assert found["consensus"] > 0
    assert found["cosine"] is None


@pytest.mark.skipif(not (DATA / "mnist.npz").exists(), reason="MNIST is not here: set FEDARENA_DATA")
def test_sketches_train_on_mnist_as_well() -> None:
    found = row("trains: mnist, degree 4, s = d/2", total=2)
    assert found["accuracy"] > 0.6
    assert 0 < found["worst node"] <= found["accuracy"] + 0.05
