"""DBCL beside a sketch of gradients: the rows of a short run, and what the paper's words allow."""

from __future__ import annotations

import pytest
from helpers.paths import DATA

from fedarena.reproduce.dbcl.gradient_sketches import LITTLE, TABLE, Length, measure
from fedarena.reproduce.machine import Machine


@pytest.mark.skipif(not (DATA / "mnist.npz").exists(), reason="MNIST is not here: set FEDARENA_DATA")
def test_every_protocol_trains_and_is_set_beside_fedavg() -> None:
    rows = measure(Length(2), Machine(data_dir=DATA), 0, lambda share, text: None)
    plain, dbcl, half, tenth = rows
    assert plain["behind"] is None
    assert plain["accuracy"] > 0.3
    for row in (dbcl, half, tenth):
        assert row["behind"] == plain["accuracy"] - row["accuracy"]
    assert half["bytes_up"] == pytest.approx(plain["bytes_up"] / 2, rel=0.01)
    assert tenth["bytes_up"] == pytest.approx(plain["bytes_up"] / 10, rel=0.01)


def test_the_claims_leave_no_gap_and_do_not_overlap() -> None:
    by_words = {one.paper: one.within for one in TABLE.published}
    assert by_words["does not hinder test accuracy at all"] == (-1.0, LITTLE)
    assert by_words["substantial worse test accuracy"] == (LITTLE, 1.0)
