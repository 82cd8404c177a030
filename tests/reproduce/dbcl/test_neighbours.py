"""What neighbours learn of each other: the pieces, that sketches hide what their rows say, and how rows are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.paths import DATA

from fedarena.reproduce.dbcl.neighbours import CASES, MEASURED, PIECES, TABLE, compact, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.table import Row


def rows(piece: str, total: int = 5, seed: int = 0) -> dict[str, Row]:
    """The rows of a piece by form."""
    found = measure(PIECES[piece], Machine(data_dir=DATA), seed, lambda share, text: None, total)
    assert all(set(MEASURED) <= set(row) for row in found)
    return {row["form"]: row for row in found}


def test_every_case_has_a_name_of_its_own() -> None:
    assert len(PIECES) == len(CASES)
    assert PIECES["trains: mnist, degree 4, s = d/2"].dataset == "mnist"


def test_a_larger_coalition_reads_more_of_a_sketch(tmp_path: Path) -> None:
    alone, all_four = (rows(f"analytic: degree 4, s = d/2, {k} of the neighbours") for k in (1, 4))
    assert alone["paper"]["cosine"] < 0.3 < alone["adaptive"]["cosine"] < all_four["adaptive"]["cosine"]
    assert all_four["adaptive"]["cosine"] > 0.99
    assert TABLE.draw is not None
    TABLE.draw([*alone.values(), *all_four.values()], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_an_eavesdropper_reads_one_edge_by_the_smoother() -> None:
    found = rows("analytic: degree 4, s = d/2, eavesdropper")
    assert found["adaptive"]["reader"] == "eavesdropper"
    assert found["paper"]["cosine"] < 0.3 < found["adaptive"]["cosine"] < 0.99


def test_one_neighbour_finds_images_by_matching_gradients() -> None:
    plain = rows("dlg: degree 4, no sketch, 1 of the neighbours", total=2)  # the first round, whose model is public
    assert plain["paper"]["identified"] == plain["adaptive"]["identified"] == 1
    sketched = rows("dlg: degree 4, s = d/2, 1 of the neighbours", total=3)
    assert sketched["paper"]["identified"] < sketched["adaptive"]["identified"] == 1


def test_another_hash_hides_another_part_of_the_gradient() -> None:
    found = {
        hash: rows(f"analytic: degree 4, s = d/2, {hash}, 2 of the neighbours")["adaptive"]["cosine"]
        for hash in ("uniform", "countsketch", "gaussian")
    }
    assert len(set(found.values())) == 3
    assert all(0.3 < cosine < 0.99 for cosine in found.values())


def test_what_sketches_cost_is_measured() -> None:
    found = rows("trains: degree 4, s = d/2")[""]
    assert 0 < found["worst node"] < found["accuracy"] <= found["mean model"] + 0.1
    assert found["consensus"] > 0
    assert found["cosine"] is None


@pytest.mark.skipif(not (DATA / "mnist.npz").exists(), reason="MNIST is not here: set FEDARENA_DATA")
def test_sketches_train_on_mnist_as_well() -> None:
    found = rows("trains: mnist, degree 4, s = d/2", total=2)[""]
    assert found["mean model"] > 0.6
    assert 0 < found["worst node"] <= found["accuracy"]


def test_rows_are_shown_as_means_with_intervals() -> None:
    def row(seed: int, identified: float, cosine: float) -> Row:
        usual: Row = {"attack": "analytic", "seed": seed, **dict.fromkeys(MEASURED), "cpu_seconds": 1.0}
        ends = {"identified_low": max(0.0, identified - 0.2), "identified_high": min(1.0, identified + 0.2)}
        return {**usual, "cosine": cosine, "identified": identified, **ends}

    (line,), (note,) = compact([row(0, 0.5, 0.6), row(1, 0.5, 0.6), row(2, 0.5, 0.9)])
    assert line["identified"] == "50 % (38 to 62 %)"  # seeds that agree: over images, 0.2/√3
    assert line["cosine"] == "0.70 ± 0.43"  # Student's t with two degrees of freedom, 4.303·0.173/√3
    assert (line["seeds"], line["accuracy"]) == (3, None)
    (line,), _ = compact([row(0, 0.2, 0.6), row(1, 0.8, 0.6)])
    assert line["identified"] == "50 % (0 to 100 %)"  # seeds that differ
    assert "over images where that is wider" in note
