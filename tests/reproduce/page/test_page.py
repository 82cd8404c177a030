"""The papers' numbers beside ours: verdicts, what is gathered from files, the order of what is missing, the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from helpers import toy_table
from helpers.paths import ROOT
from helpers.published import every_published_number

from fedarena import __version__
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import Mean
from fedarena.reproduce.left_out import counted
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Comparison, Gathered, gather, quoted
from fedarena.reproduce.page.order import cheapest_first, expected
from fedarena.reproduce.page.page import LEFT_OUT, markdown, page
from fedarena.reproduce.page.parts import (
    GUESS,
    PUBLISHED,
    MeasuredPart,
    PartKey,
    load,
    path_of,
    publish,
    save,
    save_guess,
)
from fedarena.reproduce.page.picture import alt, draw, drawn
from fedarena.reproduce.page.verdict import ours_of, verdict
from fedarena.reproduce.published import Published

TABLE = toy_table.NAME


@pytest.fixture
def toy() -> Iterator[str]:
    """The toy's table, and no other."""
    with toy_table.alone():
        yield TABLE


def part(piece: str = "red, one", seed: int = 0, seconds: float = 1.0, table: str = TABLE, **row: Any) -> MeasuredPart:
    rows = [{"accuracy": 0.5, **row}]
    environment = {"fedarena": __version__, "commit": "abc"}
    return MeasuredPart(
        PartKey(table, piece, seed),
        setting=toy_table.TABLE.setting,
        rows=rows,
        cpu_seconds=seconds,
        environment=environment,
    )


def put(folder: Path, *parts: MeasuredPart) -> Path:
    for one in parts:
        save(folder, one)
    return folder


SHARE = Published("p", paper=0.80, column="accuracy")
COUNT = Published("p", paper=100, column="rounds", decimals=0, share=False, better="lower")
WORDS = Published("p", paper="about 0", column="cosine", better="", within=(-0.05, 0.05))


@pytest.mark.parametrize(
    ("published", "found", "expected"),
    [
        (SHARE, Mean(0.79, None, 1), "held"),  # a point, of one seed
        (SHARE, Mean(0.8101, None, 1), "better"),
        (SHARE, Mean(0.7899, None, 1), "differs"),
        (SHARE, Mean(0.77, 0.03, 3), "held"),  # within the interval, which is narrow enough
        (SHARE, Mean(0.77, 0.0251, 3), "held"),  # with the paper's rounding
        (SHARE, Mean(0.77, 0.0249, 3), "differs"),
        (SHARE, Mean(0.70, 0.2, 2), "open"),  # so wide that it would hold nearly anything
        (SHARE, Mean(0.795, 0.2, 2), "held"),  # near, whatever the interval
        (SHARE, None, "no result"),
        (SHARE, "more than 1000", "differs"),
        (COUNT, Mean(110, None, 1), "held"),
        (COUNT, Mean(111, None, 1), "differs"),
        (COUNT, Mean(89, None, 1), "better"),
        (replace(SHARE, better=""), Mean(0.9, None, 1), "differs"),
        (replace(SHARE, apart="other data"), Mean(0.8, None, 1), "not comparable"),
        (WORDS, Mean(0.05, None, 1), "held"),
        (WORDS, Mean(0.06, None, 1), "differs"),
        (Published("p", paper="67~174", column="layers"), "1~2", "differs"),
    ],
)
def test_verdicts_follow_the_rule(published: Published, found: Mean | str | None, expected: str) -> None:
    assert verdict(published, found) == expected


def test_ours_is_a_mean_or_what_is_there_in_words() -> None:
    assert ours_of([0.5]) == Mean(0.5, None, 1)
    mean = ours_of([0.4, 0.6])
    assert isinstance(mean, Mean)
    assert (mean.value, mean.seeds) == (0.5, 2)
    assert mean.half == pytest.approx(12.706 * 0.1, rel=1e-3)  # t(1) · s/√2
    assert ours_of([]) is ours_of([None]) is ours_of([0.5, None]) is None  # a seed without a number is not left out
    assert ours_of(["more than 1000", 400]) == "more than 1000, 400"


def test_several_seeds_have_an_interval_and_one_has_none(toy: str, tmp_path: Path) -> None:
    one = part("red, two", accuracy=0.61)
    put(tmp_path, *(part(seed=s, seconds=2.0, accuracy=0.49 + 0.01 * s) for s in range(3)), one)
    first, second, third = gather(tmp_path, tmp_path).comparisons[toy]
    assert (first.verdict, first.seeds, first.cpu_seconds) == ("held", (0, 1, 2), 6.0)
    assert first.difference == pytest.approx(0.0)
    assert words.interval(first) == "0.4752 to 0.5248"  # ± 4.303 · 0.01/√3
    assert (second.verdict, words.interval(second), words.difference(second)) == ("held", "one seed", "+0.0100")
    assert first.command == 'bench reproduce dbcl/toy --only "red, one" --seeds 0,1,2'
    assert second.command == 'bench reproduce dbcl/toy --only "red, two"'
    assert (third.verdict, third.ours, third.seeds) == ("not measured", None, ())


def test_the_interval_of_a_share_stays_among_shares(toy: str, tmp_path: Path) -> None:
    put(tmp_path, *(part(seed=s, accuracy=a) for s, a in enumerate((0.05, 0.95, 0.7))))
    line = gather(tmp_path, tmp_path).comparisons[toy][0]
    assert words.interval(line) == "0.0000 to 1.0000"
    counted = replace(line, published=replace(line.published, share=False))
    assert words.interval(counted).startswith("-0.")


def test_missing_are_the_seeds_that_are_asked_for(toy: str, tmp_path: Path) -> None:
    put(tmp_path, part(seed=1))
    blue, two = PartKey(toy, "blue, three", 0), PartKey(toy, "red, two", 0)
    assert gather(tmp_path, tmp_path).missing == [two, blue]  # some seed of "red, one" is there
    asked = gather(tmp_path, tmp_path, seeds=(0,))
    assert asked.missing == [PartKey(toy, "red, one", 0), two, blue]
    assert asked.comparisons[toy][0].verdict == "not measured"  # seed 1 was not asked for
    assert gather(tmp_path, tmp_path, only="dbcl/toy: blue").missing == [blue]
    assert not gather(tmp_path, tmp_path, only="baffle").comparisons


def test_a_failure_is_told_beside_the_number_that_it_cost(toy: str, tmp_path: Path) -> None:
    found = gather(tmp_path, tmp_path, failed={PartKey(toy, "red, one", 0): "no data"})
    assert [line.reason for line in found.comparisons[toy]] == ["no data", "", ""]
    put(tmp_path, part(accuracy=None, note="diverged: step 3"))
    (line, *_) = gather(tmp_path, tmp_path).comparisons[toy]
    assert (line.verdict, line.reason) == ("no result", "diverged: step 3")


def test_a_number_that_two_rows_answer_to_is_none(toy: str, tmp_path: Path) -> None:
    twice = part()
    put(tmp_path, replace(twice, rows=[*twice.rows, *twice.rows]))
    assert gather(tmp_path, tmp_path).comparisons[toy][0].verdict == "no result"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is damaged (JSONDecodeError"),
        ("[]", "is damaged (TypeError"),
        ('{"part": 1}', "is damaged (KeyError: 'rows')"),
        ('{"part": 99}', "has layout 99"),
    ],
)
def test_a_damaged_file_is_one_line_and_counts_as_missing(toy: str, tmp_path: Path, content: str, told: str) -> None:
    put(tmp_path, part(), part("red, two"))
    bad = path_of(tmp_path, PartKey(toy, "red, two", 0))
    bad.write_text(content)
    found = gather(tmp_path, tmp_path)
    (complaint,) = found.complaints
    assert str(bad) in complaint
    assert told in complaint
    assert "\n" not in complaint
    assert [line.verdict for line in found.comparisons[toy]] == ["held", "not measured", "not measured"]
    assert PartKey(toy, "red, two", 0) in found.missing
    assert complaint in page(found, None, "")


def test_a_part_in_another_s_place_is_not_taken_for_it(toy: str, tmp_path: Path) -> None:
    put(tmp_path, part())
    mine = path_of(tmp_path, PartKey(toy, "red, one", 0))
    mine.rename(path_of(tmp_path, PartKey(toy, "red, two", 0)))
    parts, complaints = load(tmp_path, toy)
    assert not parts
    assert "holds another part (dbcl/toy: red, one, seed 0)" in complaints[0]


@pytest.mark.parametrize("change", ["version", "setting"])
def test_what_another_version_or_setting_measured_is_stale(toy: str, tmp_path: Path, change: str) -> None:
    one = part()
    put(
        tmp_path,
        replace(one, environment={"fedarena": "0.0.1"}) if change == "version" else replace(one, setting="before"),
    )
    found = gather(tmp_path, tmp_path)
    assert found.comparisons[toy][0].verdict == "not measured"
    assert "counts as not measured" in found.complaints[0]
    assert PartKey(toy, "red, one", 0) in found.missing


def test_what_is_published_beside_the_page_counts_where_nothing_else_does(toy: str, tmp_path: Path) -> None:
    out, report = tmp_path / "runs", tmp_path / "report"
    publish(report, [part(accuracy=0.7), part("red, two", accuracy=0.6)])
    put(out, part(accuracy=0.5))
    found = gather(out, report)
    assert [line.ours for line in found.comparisons[toy]] == [Mean(0.5, None, 1), Mean(0.6, None, 1), None]
    assert found.missing == [PartKey(toy, "blue, three", 0)]
    publish(report, found.parts)
    assert gather(tmp_path / "nothing", report).comparisons[toy][0].ours == Mean(0.5, None, 1)


def test_of_one_part_the_one_that_holds_counts(toy: str, tmp_path: Path) -> None:
    out, report = tmp_path / "runs", tmp_path / "report"
    publish(report, [part(accuracy=0.6)])
    put(out, replace(part(), environment={"fedarena": "0.0.1"}))
    found = gather(out, report)
    assert (found.comparisons[toy][0].ours, found.complaints) == (Mean(0.6, None, 1), [])
    publish(report, [replace(part(), setting="before")])
    found = gather(out, report)
    assert found.comparisons[toy][0].verdict == "not measured"
    assert len(found.complaints) == 1


@pytest.mark.parametrize(
    ("line", "told"), [("{", "is damaged (JSONDecodeError"), ('{"part": 9}', "has layout 9"), ("3", "is damaged")]
)
def test_a_damaged_line_beside_the_page_is_told_and_costs_no_other(
    toy: str, tmp_path: Path, line: str, told: str
) -> None:
    publish(tmp_path, [part(), part("red, two", accuracy=0.6)])
    path = tmp_path / PUBLISHED
    whole = path.read_text().splitlines()
    path.write_text("\n".join([whole[0], line, whole[1]]) + "\n")
    found = gather(tmp_path, tmp_path)
    assert [one.verdict for one in found.comparisons[toy]] == ["held", "held", "not measured"]
    (complaint,) = found.complaints
    assert complaint.startswith(f"{path}, line 2, {told}")
    path.write_bytes(b"\xff\xfe")
    assert "cannot be read" in gather(tmp_path, tmp_path).complaints[0]
    with pytest.raises(UserError, match="cannot be read"):
        publish(tmp_path, [part()])
    assert path.read_bytes() == b"\xff\xfe"  # as it was: somebody may mend it


def test_names_alike_and_long_have_files_of_their_own(tmp_path: Path) -> None:
    names = ["ε = 1", "ε = 2", "γ = 1", "x" * 300, "x" * 299]
    paths = {path_of(tmp_path, PartKey(TABLE, name, 0)) for name in names}
    assert len(paths) == len(names)
    assert all(len(path.name) < 120 for path in paths)
    one = part(names[-1], seed=7)
    save(tmp_path, one)
    assert load(tmp_path, TABLE) == ([one], [])


def test_expected_times_are_those_of_names_most_alike() -> None:
    names = ("a/x", "usps, one"), ("a/y", "usps, two"), ("a/y", "mnist, one")
    there = {PartKey(*name, 0): seconds for name, seconds in zip(names, (10.0, 30.0, 500.0), strict=True)}
    assert expected(PartKey("a/x", "usps, two, more", 0), there) == 30.0
    assert expected(PartKey("a/x", "usps, three", 0), there) == 20.0  # the median of the paper's tables
    assert expected(PartKey("a/x", "usps, one", 5), there) == 10.0  # the same, another seed
    assert expected(PartKey("a/x", "fashion, one", 0), there) is None
    assert expected(PartKey("b/x", "usps, one", 0), there) is None  # another paper


def test_the_cheapest_come_first_and_then_the_tables_in_turn() -> None:
    there = {PartKey("a/x", "usps, one", 0): 10.0, PartKey("a/x", "mnist, one", 0): 5.0}
    asked = [PartKey("a/x", name, 0) for name in ("k, 1", "k, 2", "usps, two", "mnist, two")]
    asked += [PartKey("b/x", "other", 0)]
    order = cheapest_first(asked, there)
    assert [one.piece for one in order] == ["mnist, two", "usps, two", "k, 1", "other", "k, 2"]


def test_what_was_given_up_has_an_expected_time_until_it_is_measured(toy: str, tmp_path: Path) -> None:
    one, other = PartKey(toy, "red, one", 0), PartKey(toy, "blue, three", 0)
    save_guess(tmp_path, one, 900.0)
    save_guess(tmp_path, other, 60.0)
    path_of(tmp_path, other).with_suffix(GUESS).write_text("{")  # no guess any more
    assert gather(tmp_path, tmp_path).times == {one: 900.0}
    put(tmp_path, part(seconds=700.0))
    assert gather(tmp_path, tmp_path).times == {one: 700.0}
    assert not path_of(tmp_path, one).with_suffix(GUESS).exists()


def rich(toy: str, folder: Path) -> Gathered:
    put(folder, *(part(seed=s, accuracy=0.5 + 0.001 * s) for s in range(3)), part("red, two", accuracy=0.9))
    return gather(folder, folder)


def test_the_page_lists_every_number_with_its_command(toy: str, tmp_path: Path) -> None:
    text = page(rich(toy, tmp_path), ("numbers.png", "two numbers"), "")
    assert "3 lines, each a number that a paper or its authors' logs print, or one derived from printed" in text
    assert "2 are measured, 1 are not." in text
    row = (
        "| red, one | accuracy | 0.50 | 0.5010 | 0.4985 to 0.5035 | +0.0010 | held | 0, 1, 2 | 3.0 s | `bench reproduce"
    )
    assert row in text
    assert "| 0.60 | 0.9000 | one seed | +0.3000 | better | 0 | 1.0 s |" in text
    assert "<summary>1 line not measured</summary>" in text
    assert '| blue, three | accuracy | 0.70 | unknown | `bench reproduce dbcl/toy --only "blue, three"` |' in text
    assert "![two numbers](numbers.png)" in text
    assert "one percentage point" in text
    assert "| all | 3 | 1 | 1 |" in text
    assert f"fedarena {__version__} at abc; 4 parts, 4.0 s of CPU time." in text


def test_an_empty_page_is_true(toy: str, tmp_path: Path) -> None:
    text = page(gather(tmp_path, tmp_path), None, "dbcl")
    assert "0 are measured, 3 are not." in text
    assert "Only what begins with `dbcl`" in text
    assert "Nothing was measured yet" in text
    assert "3 parts are missing; how long they take is not known." in text
    assert "![" not in text


def test_the_picture_shows_what_can_be_compared(toy: str, tmp_path: Path) -> None:
    found = rich(toy, tmp_path)
    assert [line.published.piece for line in drawn(found.all)] == ["red, one", "red, two"]
    told = alt(found.all)
    assert told.startswith("shares, ours against the paper's, around the diagonal: 1 of 2 held")
    assert "the farthest 0.300 away" in told
    line = drawn(found.all)[1]
    ratio = replace(line, published=replace(line.published, share=False, paper=0.45))
    assert "ours 2 to 2 times the paper's" in alt([ratio])
    for lines in (found.all, [*found.all, ratio], [ratio]):
        draw(lines, tmp_path / f"{len(lines)}.png")
    pictures = [(tmp_path / f"{n}.png").read_bytes() for n in (3, 4, 1)]
    assert len(set(pictures)) == 3
    assert all(p.startswith(b"\x89PNG") for p in pictures)


@pytest.mark.parametrize(
    ("seconds", "told"), [(None, "unknown"), (2.34, "2.3 s"), (42.4, "42 s"), (240, "4 min"), (9000, "2.5 h")]
)
def test_durations(seconds: float | None, told: str) -> None:
    assert words.duration(seconds) == told


def test_names_are_quoted_for_a_shell() -> None:
    assert quoted("a, ε = 2") == '"a, ε = 2"'
    assert quoted("the paper's") == '"the paper\'s"'
    assert quoted("50 $ `x`") == "'50 $ `x`'"


def test_a_table_s_cells_keep_their_bars() -> None:
    assert markdown(["a"], [["x|y"]]).splitlines()[-1] == "| x\\|y |"


def shown_differences(page_text: str) -> Iterator[tuple[str, Decimal, Decimal, Decimal]]:
    """(line, the paper's, ours, difference) of every line of a page that has a difference, as printed."""
    head: list[str] = []
    for line in page_text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("#"):
            head = []
        elif "difference" in cells:
            head = cells
        elif head and len(cells) == len(head) and re.fullmatch(r"[+-][\d.]+", cells[head.index("difference")]):
            paper, mine, apart = (cells[head.index(name)] for name in ("paper", "ours", "difference"))
            yield line, Decimal(paper.split(" ")[0]), Decimal(mine), Decimal(apart)


def assert_differences_hold(page_text: str, least: int) -> None:
    found = list(shown_differences(page_text))
    assert len(found) >= least
    for line, paper, mine, apart in found:
        digit = Decimal(1).scaleb(int(apart.as_tuple().exponent))
        assert abs(apart - (mine - paper)) <= digit / 2, line


def test_differences_on_the_page_are_ours_less_the_paper_s_as_printed() -> None:
    """Every published number, beside one of ours that has more digits than are shown."""
    every = [(t, p) for t, p in every_published_number() if not isinstance(p.paper, str) and not p.apart]
    lines: dict[str, list[Comparison]] = {}
    for i, (t, p) in enumerate(every):
        mine = Mean(float(p.paper) * (1 + 0.1 * math.sin(i)), None, 1)
        lines.setdefault(t, []).append(
            Comparison(t, published=p, ours=mine, verdict=verdict(p, mine), seeds=(0,), cpu_seconds=1.0)
        )
    text = page(
        Gathered(lines, settings=dict.fromkeys(lines, ""), without=(), missing=(), parts=(), times={}, complaints=()),
        None,
        "",
    )
    assert_differences_hold(text, len(every))


def test_differences_on_the_page_at_hand_are_ours_less_the_paper_s() -> None:
    assert_differences_hold((ROOT / "reports/reproduction/README.md").read_text(), 20)


def test_the_page_tells_what_of_the_papers_is_not_there(toy: str, tmp_path: Path) -> None:
    text = page(gather(tmp_path, tmp_path), None, "")
    printed, here = counted(["dbcl"])
    assert f"the papers print {printed} results, of which {here} are on this page and {printed - here} are not" in text
    assert f"## {LEFT_OUT}\n" in text
    assert f"(#{LEFT_OUT.lower().replace(' ', '-')})" in text
    assert "| dbcl | Table 1 | 20 | 20 | 0 |" in text
    assert "| baffle |" not in text  # which the toy is not of
    assert LEFT_OUT not in page(gather(tmp_path, tmp_path), None, "dbcl/toy: red")


def test_the_page_at_hand_is_what_the_parts_beside_it_give() -> None:
    found = gather(ROOT / "nothing", ROOT / "reports/reproduction")
    text = (ROOT / "reports/reproduction/README.md").read_text()
    assert len(found.parts) > 100
    assert page(found, ("numbers.png", alt(found.all)), "") == text
