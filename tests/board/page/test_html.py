"""The page's file: self-contained, inert, bounded, and of use without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.big_board import HOSTILE, big_board
from helpers.board import make_board, make_cell, make_clean_run
from helpers.pictures import save_pictures

from fedarena.board.advice import advice
from fedarena.board.board import BoardCell
from fedarena.board.page import pictures as page_pictures
from fedarena.board.page.heat_colours import contrast, heat_css
from fedarena.board.page.html import inert, page
from fedarena.board.page.outcome import outcome
from fedarena.board.ranking import rank_defenses
from fedarena.board.score_text import HOW, defense_name, rank, score
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_loads_nothing_from_the_network() -> None:
    text = page(big_board())
    assert re.findall(r'(?:src|href|action|data)="(?!#)[^"]*"', text) == []
    assert re.findall(r"<(?:link|iframe|object|embed|base)\b|@import|url\(", text) == []
    assert set(re.findall(r"https?://[^\s\"'`)]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_policy_admits_the_page_s_own_script_and_style_alone() -> None:
    text = page(big_board())
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    policy = html.unescape(found[1])
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_hostile_text_cannot_leave_its_place() -> None:
    text = page(big_board())
    assert HOSTILE not in text
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert HOSTILE in data_of(text)["defenses"]
    assert inert(["</script><!--&\u2028"]) == '["\\u003c/script\\u003e\\u003c!--\\u0026\\u2028"]'


def test_placeholders_in_names_are_not_filled_in() -> None:
    board = make_board([make_cell("{{data}}", score=0.5), make_cell("{attack}")], [make_clean_run("{{data}}")])
    text = page(board)
    assert "{{data}}" in html.unescape(text.split("<tbody>")[1].split("</tbody>")[0])
    assert outcome(board.cells[1], board) == "Against {attack}, dlg recovers 50 % of the images."


def test_the_page_has_ranking_and_advice_without_javascript() -> None:
    board, threats = big_board(), read_threat_filter("server,own", ["digits"])
    text = page(board, threats)
    body = text.split("<tbody>")[1].split("</tbody>")[0]
    lines = re.findall(r"<tr.*?</tr>", body)
    for row, line in zip(rank_defenses(board, threats), lines, strict=True):
        cells = [
            html.unescape(re.sub(r"<small.*?</small>|<[^>]*>", "", c)) for c in re.findall(r"<t[dh].*?</t[dh]>", line)
        ]
        assert cells[:2] == [rank(row), defense_name(row)]
        assert cells[3:8] == [score(s) for s in (row.lowest, row.utility, row.integrity, row.privacy, row.overall)]
    for sentence in (*advice(board, threats), *HOW):
        assert f"<p>{html.escape(sentence)}</p>" in text
    assert '<details id="settings" hidden>' in text
    assert "<noscript>" in text


def test_the_filter_is_chosen_first() -> None:
    text = page(big_board(), read_threat_filter("server,own", ["fashion"]))
    assert re.findall(r'value="(\w+)" checked', text) == ["server", "own"]
    assert "<option selected>fashion</option>" in text
    assert '<th scope="col" class="more" data-key="party:client" hidden>' in text
    nobody = page(big_board(), read_threat_filter("server"))
    assert '<th scope="col" class="beside" data-key="integrity" hidden>' in nobody
    assert '<th scope="col" class="more" data-key="average:integrity" hidden>' in nobody


def test_the_page_keeps_the_problems_of_the_filter() -> None:
    board = big_board(problems=("digits", "fashion", "faces"))
    assert data_of(page(board, ThreatFilter(problems=("digits", "faces"))))["problems"] == ["", "digits", "faces"]


def test_scores_are_exact_and_curves_are_rounded() -> None:
    board = big_board()
    data = data_of(page(board))
    for cell, found in zip(board.cells, data["cells"], strict=True):
        assert dict(map(tuple, found["scores"])) == cell.scores
    cell = make_cell(metrics={"recovered": {0: 1 / 3}}, curve=((0, 1 / 3),), series={"roc": [[0.0, 2 / 3]]})
    (found,) = data_of(page(make_board([cell], [])))["cells"]
    assert found["metrics"] == [["recovered", [[0, 0.3333]]]]
    assert (found["curve"], found["series"]) == ([[0, 0.3333]], [["roc", [[0, 0.6667]]]])


def test_every_choice_has_its_advice() -> None:
    board = big_board()
    data = data_of(page(board))
    assert len(data["cuts"]) == 16 * 4 * 3
    said = data["cuts"]["server|own|2"]
    assert [data["sentences"][i] for i in said] == advice(board, read_threat_filter("server,own", ["fashion"]))
    one = data_of(page(big_board(problems=("digits",))))
    assert one["cuts"]["server|own|0"] == one["cuts"]["server|own|1"]


def test_pictures_are_kept_once_and_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    originals = draw.random((2, 1, 8, 8))
    cells = [make_cell(form=form) for form in ("paper", "adaptive")]
    for c in cells:
        save_pictures(tmp_path, c.keys[1], originals, draw.random((2, 1, 8, 8)))
    board = make_board(cells)
    data = data_of(page(board, folder=tmp_path))
    assert len(data["pictures"]) == 3
    assert all(uri.startswith("data:image/png;base64,") for uri in data["pictures"])
    assert [c["picture"] for c in data["cells"]] == [[0, 1], [0, 2]]
    monkeypatch.setattr(page_pictures, "LARGEST", sum(len(uri) for uri in data["pictures"][:2]))
    text = page(board, folder=tmp_path)
    assert [c["picture"] for c in data_of(text)["cells"]] == [[0, 1], None]
    assert "pictures of 1 cell are left out" in text


def test_arrays_of_other_shapes_are_left_out(tmp_path: Path) -> None:
    cell = make_cell()
    save_pictures(tmp_path, cell.keys[0], np.zeros((2, 5)), np.zeros((2, 5)))
    assert data_of(page(make_board([cell]), folder=tmp_path))["cells"][0]["picture"] is None


def test_a_score_can_be_read_on_its_colour() -> None:
    classes = re.findall(r"\.h(\d+)\{background:#(\w{6}) !important;color:#(\w{6}) !important\}", heat_css())
    assert [int(i) for i, _, _ in classes] == list(range(11))
    shades = [tuple(int(shade[k : k + 2], 16) for k in (0, 2, 4)) for _, shade, _ in classes]
    for (_, _, text), shade in zip(classes, shades, strict=True):
        assert contrast(shade, (0, 0, 0) if text == "000000" else (255, 255, 255)) >= 4.5
    # In black and white the order remains.
    grey = [contrast(shade, (0, 0, 0)) for shade in shades]
    assert grey == sorted(grey)
    assert len(set(grey)) == len(grey)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.005)  # the well-known #777


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (make_cell("dbcl", score=0.75), "Against dbcl, dlg recovers 25 % of the images."),
        (make_cell("fedavg", score=0.75), "Without a defense, dlg recovers 25 % of the images."),
        (make_cell(status="failed"), ""),
        (make_cell(goal="of another version"), ""),
        (
            make_cell("dbcl", "sign-flip", axis="integrity", metrics={"accuracy": {0: 0.5}}),
            "Under sign-flip the model ends with accuracy 50 % (without poisoning: 89 ± 2 %).",
        ),
        (
            make_cell(
                "krum", "pixel", axis="integrity", metrics={"accuracy": {0: 0.5}, "attack_success_rate": {0: 0.9}}
            ),
            "Under pixel the model ends with accuracy 50 %; its trigger works on 90 % of inputs.",
        ),
        (make_cell("krum", "alie", status="failed", axis="integrity"), ""),
    ],
)
def test_an_outcome_is_a_sentence(cell: BoardCell, text: str) -> None:
    assert outcome(cell, make_board([cell])) == text


def test_boards_with_few_results_make_pages() -> None:
    assert "nothing was measured" in page(make_board([], [], seeds=(), problems=()))
    assert "one seed (0): no interval" in page(make_board([make_cell(seeds=(0,))], seeds=(0,)))
    assert "none of the 1 cells gave a result" in page(make_board([make_cell(status="failed")]))
