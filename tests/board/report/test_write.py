"""A report's files: the page names what is there, the same records give the same bytes, and nothing is left over."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from helpers.board import make_board, make_cell, make_problem
from helpers.report import COMMANDS, rich_board, save_pictures
from PIL import Image

from fedarena.board.published import from_json
from fedarena.board.report.report_figure import LARGEST
from fedarena.board.report.write import write_report
from fedarena.core.errors import UserError

NAMED = re.compile(r"!\[(?P<alt>.*)\]\((?P<path>[^)]+)\)")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a rich board with pictures."""
    folder = tmp_path_factory.mktemp("play")
    save_pictures(rich_board(), folder / "runs")
    write_report(rich_board(), folder / "runs", folder / "report", COMMANDS)
    return folder / "report"


def below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_figure_named_is_there_and_the_other_way_round(written: Path) -> None:
    named = [match["path"] for match in NAMED.finditer((written / "README.md").read_text())]
    there = [name for name in below(written) if name.endswith(".png")]
    assert sorted(named) == sorted(there)
    kinds = {Path(name).stem.split("-")[0] for name in there}
    assert kinds == {"scores", "rounds", "images", "roc", "epsilon", "cost"}
    pages = {"README.md", *(f"cells-{goal}.md" for goal in ("poisoning", "reconstruction", "membership"))}
    assert set(below(written)) == {*there, *pages, "board.json"}
    assert all(f"]({name})" in (written / "README.md").read_text() for name in pages - {"README.md"})


def test_every_figure_has_a_fit_picture_an_alt_text_and_its_command(written: Path) -> None:
    text = (written / "README.md").read_text()
    alts = {match["path"]: match["alt"] for match in NAMED.finditer(text)}
    assert len(set(alts.values())) == len(alts)
    for path, alt in alts.items():
        assert len(re.findall(r"\d\.\d\d", alt)) >= 1
        data = (written / path).read_bytes()
        assert len(data) <= LARGEST
        with Image.open(io.BytesIO(data)) as picture:
            assert min(picture.size) > 150
            assert len(set(picture.convert("L").get_flattened_data())) > 20
        after = text.split(f"]({path})\n\n")[1].split("\n\n")[0]
        assert after.endswith("Made by `bench report play`.")


def test_the_same_records_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    save_pictures(rich_board(), tmp_path / "other-runs")
    write_report(rich_board(), tmp_path / "other-runs", tmp_path / "again", COMMANDS)
    assert below(tmp_path / "again") == below(written)


def test_the_board_beside_the_page_is_the_board(written: Path) -> None:
    path = written / "board.json"
    assert from_json(path.read_text(), path) == rich_board()


def test_no_file_names_the_machine_s_folders(written: Path) -> None:
    for name, data in below(written).items():
        assert str(written.parent).encode() not in data, name
    assert not re.search(r"(?<![\w:/])/(home|tmp|work|root)/", (written / "README.md").read_text())


def test_figures_of_an_earlier_report_go_and_files_of_others_stay(tmp_path: Path) -> None:
    save_pictures(rich_board(), tmp_path / "runs")
    write_report(rich_board(), tmp_path / "runs", tmp_path / "out", COMMANDS)
    mine = tmp_path / "out" / "images" / "mine.png"
    mine.write_bytes(b"mine")
    done = write_report(make_board(), tmp_path / "runs", tmp_path / "out", COMMANDS)
    # Another board's keys: its pictures are not the old ones.
    assert "images/roc-digits.png" in done.removed
    there = {name for name in below(tmp_path / "out") if name.endswith(".png")}
    named = {match["path"] for match in NAMED.finditer(done.readme.read_text())}
    assert there == {*named, "images/mine.png"}


def test_problems_that_share_a_file_name_keep_their_own_figures(tmp_path: Path) -> None:
    cells = [make_cell(score=0.1, problem="a b"), make_cell(score=0.9, problem="a+b")]
    board = make_board(cells, [], problems=(make_problem(name="a b"), make_problem(name="a+b")))
    done = write_report(board, tmp_path, tmp_path / "out", COMMANDS)
    alts = {match["path"]: match["alt"] for match in NAMED.finditer(done.readme.read_text())}
    assert "0.10" in alts["images/scores-a-b.png"]
    assert "0.90" in alts["images/scores-a-b-2.png"]


def test_large_colour_pictures_stay_within_bounds(tmp_path: Path) -> None:
    board = rich_board()
    save_pictures(board, tmp_path / "runs", side=62, channels=3)
    write_report(board, tmp_path / "runs", tmp_path / "out", COMMANDS)
    assert (tmp_path / "out" / "images" / "images-digits-dlg.png").stat().st_size <= LARGEST


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(UserError, match=r"option 'out' is .*file.* cannot be written"):
        write_report(make_board(), tmp_path, tmp_path / "file" / "out", COMMANDS)
