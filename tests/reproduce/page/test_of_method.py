"""The lines of the pages that are about one method."""

from __future__ import annotations

from functools import cache

import pytest
from helpers.paths import ROOT

from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.reproduce.page.gather import Comparison, Gathered, gather
from fedarena.reproduce.page.layout import paper_of
from fedarena.reproduce.page.of_method import claimed, lines_of
from fedarena.reproduce.page.tallies import COMPARED


@cache
def published() -> Gathered:
    return gather(ROOT / "no parts", ROOT / "reports/reproduction")


def lines(kind: Kind, name: str) -> list[Comparison]:
    return lines_of(registry.find(kind, name), published())


@pytest.mark.parametrize("name", ["baffle", "dbcl", "pbpfl", "two-stage"])
def test_the_table_that_a_card_names_comes_first(name: str) -> None:
    (table,) = claimed(registry.find("defense", name))
    found = lines("defense", name)
    assert found[0].table == table
    assert {paper_of(one.table) for one in found} == {name}
    assert len({one.table for one in found}) > 1


def test_every_line_is_measured_comparable_and_there_once() -> None:
    every = [lines(kind, name) for kind in registry.registries() for name in registry.registries()[kind].names()]
    assert {one.verdict for found in every for one in found} <= set(COMPARED)
    assert all(len({id(one) for one in found}) == len(found) for found in every)
    assert sum(map(bool, every)) > 10


@pytest.mark.parametrize(("kind", "name"), [("aggregator", "krum"), ("attack", "mimic"), ("aggregator", "median")])
def test_a_line_is_about_the_methods_that_its_setting_names(kind: Kind, name: str) -> None:
    found = lines(kind, name)
    assert found
    assert all(name in one.published.piece.lower().split(", ") for one in found)


def test_a_line_about_another_defense_is_none_of_the_protocol() -> None:
    assert all(("method", "fedavg") not in one.published.row for one in lines("defense", "pbpfl"))
    assert any(("method", "fedavg") in one.published.row for one in lines("defense", "fedavg"))


def test_words_that_mean_another_thing_name_no_method() -> None:
    assert all(one.table != "baffle/figure5" for one in lines("attack", "gaussian"))
    assert all(one.table != "dbcl/figure3" for one in lines("defense", "fedavg"))


def test_data_sets_and_models_have_no_lines() -> None:
    assert lines("dataset", "mnist") == []
    assert lines("model", "lenet-baffle") == []
