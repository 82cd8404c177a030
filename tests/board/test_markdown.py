"""The leaderboard as markdown."""

from __future__ import annotations

import re

from helpers.big_board import HOSTILE, big_board
from helpers.board import make_board, make_cell, with_references, without_references

from fedarena.board.leaderboard import render
from fedarena.board.markdown import page, ranking
from fedarena.board.ranking import rank_defenses
from fedarena.board.score_text import HOW, defense_name, rank, score
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter
from fedarena.core.text.markdown import escape


def rows_of(text: str) -> list[list[str]]:
    """The cells of every table line."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_number_is_that_of_the_ranking() -> None:
    board, threats = without_references(big_board()), read_threat_filter("server,eavesdropper,own")
    lines = rows_of(ranking(render(board, threats)))
    half = len(lines) // 2
    first, second = lines[:half], lines[half:]
    assert first[0] == [
        *("rank", "defense", "lowest", "utility", "integrity", "worst case of integrity", "privacy"),
        *("worst case of privacy", "mean", "bytes / FedAvg's", "time / FedAvg's"),
    ]
    for row, line, beside in zip(rank_defenses(board, threats), first[2:], second[2:], strict=True):
        assert line[0] == beside[0] == rank(row)
        assert line[1] == beside[1] == escape(defense_name(row))
        assert [line[i] for i in (2, 3, 4, 6, 8)] == [
            score(s) for s in (row.lowest, row.utility, row.integrity, row.privacy, row.overall)
        ]
        assert beside[2:4] == [score(row.paper_integrity), score(row.paper_privacy)]
        assert beside[6:8] == [score(row.by_party[p]) for p in ("server", "eavesdropper")]


def test_all_lines_of_a_table_have_equally_many_cells() -> None:
    lines = rows_of(ranking(render(without_references(big_board()))))
    widths = [len(line) for line in lines]
    half = len(lines) // 2
    assert len(set(widths[:half])) == len(set(widths[half:])) == 1


def test_columns_without_a_threat_are_left_out() -> None:
    board = without_references(big_board())
    assert "integrity" not in ranking(render(board, read_threat_filter("server")))
    assert "privacy" not in ranking(render(board, read_threat_filter("own")))


def test_references_have_a_table_of_their_own() -> None:
    text = ranking(render(with_references(make_board(), 0.6)))
    assert rows_of(text)[-1] == ["local-only", "each client trains alone", "60 ± 0 %", "0", "–", "1"]
    assert "What can be had without a federation is never ranked." in text


def test_hostile_names_stay_text() -> None:
    text = page(render(big_board()))
    assert HOSTILE not in text
    assert "<" not in text.replace("\\<", "")
    assert escape("a|b\n# c <i> _x_ `y`") == "a\\|b \\# c \\<i\\> \\_x\\_ \\`y\\`"


def test_the_page_has_all_parts_and_true_words_without_records() -> None:
    text = page(render(big_board(), ThreatFilter()), ["bench leaderboard play"])
    for part in (*HOW, "## Notes", "`bench leaderboard play`", "No rank: median: 4 of 26", "commit 0123456789ab"):
        assert part in text
    empty = page(render(make_board([], [], seeds=(), problems=(), provenance={})))
    assert "No records, so there is nothing to rank." in empty
    assert "no seeds: nothing was measured" in empty
    assert "Made from" not in empty


def test_one_seed_and_failures_are_stated() -> None:
    one = page(render(make_board([make_cell(seeds=(0,))], seeds=(0,)), read_threat_filter("server")))
    assert "one seed (0): no interval, and differences may be chance" in one
    failed = page(render(make_board([make_cell(status="failed")]), read_threat_filter("server")))
    assert "1 failed" in failed
    assert "No rank: fedavg: it is no defense, and stands for comparison" in failed
    assert "No rank: dbcl, two-stage: no privacy score" in failed
