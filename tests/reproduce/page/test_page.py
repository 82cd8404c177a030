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
from fedarena.core.text.numbers import Mean, t_quantile
from fedarena.reproduce.left_out import counted
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Comparison, Gathered, gather, quoted
from fedarena.reproduce.page.layout import FRONT, GROUPS, LEFT, page_of
from fedarena.reproduce.page.order import cheapest_first, expected
from fedarena.reproduce.page.page import pages
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
from fedarena.reproduce.page.tallies import LEFT_OUT, farthest, markdown, scatter
from fedarena.reproduce.page.verdict import APART, ours_of, standard_error, verdict
from fedarena.reproduce.published import NOT_FOUND, Cause, Published, Spread
from fedarena.reproduce.tables import TABLES

TABLE = toy_table.NAME
REPORT = ROOT / "reports/reproduction"
PAGES_AT_HAND = sorted(REPORT.glob("*.md"))


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


def mean_of(value: float, error: float) -> Mean:
    """A mean of three seeds with this standard error."""
    return Mean(value, t_quantile(2) * error, 3)


SHARE = Published("p", paper=0.80, column="accuracy")
LOGGED = replace(SHARE, spread=Spread(0.01 * math.sqrt(3), seeds=3))
COUNT = Published("p", paper=100, column="rounds", decimals=0, share=False, better="lower")
WORDS = Published("p", paper="about 0", column="cosine", better="", within=(-0.05, 0.05))


@pytest.mark.parametrize(
    ("published", "found", "expected"),
    [
        (SHARE, Mean(0.78, None, 1), "held"),  # within the tolerance, of one seed
        (SHARE, Mean(0.8201, None, 1), "better"),
        (SHARE, Mean(0.7799, None, 1), "differs"),
        (SHARE, mean_of(0.75, error=0.0251), "held"),  # within two standard errors
        (SHARE, mean_of(0.75, error=0.0249), "differs"),
        (SHARE, mean_of(0.70, error=0.06), "open"),  # so wide that it would hold nearly anything
        (SHARE, mean_of(0.785, error=0.06), "held"),  # near, whatever the error
        (LOGGED, mean_of(0.75, error=0.024), "held"),  # with the logs' own error of .01
        (LOGGED, mean_of(0.75, error=0.022), "differs"),
        (LOGGED, Mean(0.765, None, 1), "held"),  # one seed that scatters as theirs: an error of .02
        (LOGGED, Mean(0.759, None, 1), "differs"),
        (SHARE, None, "no result"),
        (replace(SHARE, apart="other data"), None, "not comparable"),
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


def test_several_seeds_have_a_standard_error_and_one_has_none(toy: str, tmp_path: Path) -> None:
    one = part("red, two", accuracy=0.61)
    put(tmp_path, *(part(seed=s, seconds=2.0, accuracy=0.49 + 0.01 * s) for s in range(3)), one)
    first, second, third = gather(tmp_path, tmp_path).comparisons[toy]
    assert (first.verdict, first.seeds, first.cpu_seconds) == ("held", (0, 1, 2), 6.0)
    assert first.difference == pytest.approx(0.0)
    assert words.standard_error(first) == "0.0058"  # 0.01/√3
    assert (second.verdict, words.standard_error(second), words.difference(second)) == ("held", "one seed", "+0.0100")
    assert first.command == 'bench reproduce dbcl/toy --only "red, one" --seeds 0,1,2'
    assert second.command == 'bench reproduce dbcl/toy --only "red, two"'
    assert (third.verdict, third.ours, third.seeds) == ("not measured", None, ())


def test_the_standard_error_is_of_both_numbers() -> None:
    assert standard_error(SHARE, Mean(0.8, None, 1)) is None
    assert standard_error(SHARE, mean_of(0.8, error=0.03)) == pytest.approx(0.03)
    assert standard_error(LOGGED, mean_of(0.8, error=0.03)) == pytest.approx(math.hypot(0.03, 0.01))
    assert standard_error(LOGGED, Mean(0.8, None, 1)) == pytest.approx(0.02)  # theirs, of one run and of three
    assert standard_error(LOGGED, "more than 1000") is None
    line = Comparison(TABLE, published=LOGGED, ours=Mean(0.8, None, 1), verdict="held", seeds=(0,), cpu_seconds=1.0)
    assert words.standard_error(line) == "0.0200, one seed"
    assert LOGGED.shown == "0.80 ± 0.02"


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
    assert complaint in pages(found, None, "")[FRONT]


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
    texts = pages(rich(toy, tmp_path), ("numbers.png", "two numbers"), "")
    assert list(texts) == [FRONT, "dbcl.md", LEFT]
    front, sheet = texts[FRONT], texts["dbcl.md"]
    assert "| red, one | 0.50 | 0.5010 | +0.0010 | 0.0006 | held | 0, 1, 2 | 3.0 s |  |" in sheet
    assert f"| red, two | 0.60 | 0.9000 | +0.3000 | one seed | better | 0 | 1.0 s | {NOT_FOUND} |" in sheet
    assert 'bench reproduce dbcl/toy --only "SETTING" --seeds SEEDS' in sheet
    assert "<summary>1 line not measured (expected CPU time: unknown)</summary>\n\n- blue, three: 0.70\n" in sheet
    assert "3 lines set a number" in front
    assert "| dbcl | 2 | 1 (50%) | 1 |  |  |  |  | 1 | [dbcl](dbcl.md) |" in front
    assert "| [dbcl/toy](dbcl.md): red, two | 0.60 | 0.9000 | +0.3000 | cause not found |  |" in front
    assert "scatters over seeds by 0.0010" in front
    assert "![two numbers](numbers.png)" in front
    assert f"took 4.0 s of CPU time, in 4 parts by fedarena {__version__} (1 commit) on cpu" in front


def test_an_empty_page_is_true(toy: str, tmp_path: Path) -> None:
    text = pages(gather(tmp_path, tmp_path), None, "dbcl")[FRONT]
    assert "| all | 0 | 0 |  |  |  |  |  | 3 |  |" in text
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
            at = head.index("ours")  # after the paper's, whose heading is its source where all have one
            paper, mine, apart = cells[at - 1], cells[at], cells[head.index("difference")]
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
    found = Gathered(
        lines,
        settings=dict.fromkeys(lines, ""),
        notes={},
        without=(),
        missing=(),
        parts=(),
        times={},
        complaints=(),
    )
    assert_differences_hold("".join(pages(found, None, "").values()), len(every))


def test_differences_on_the_page_at_hand_are_ours_less_the_paper_s() -> None:
    assert_differences_hold("".join(path.read_text() for path in PAGES_AT_HAND), 400)


def test_the_page_tells_what_of_the_papers_is_not_there(toy: str, tmp_path: Path) -> None:
    texts = pages(gather(tmp_path, tmp_path), None, "")
    printed, here = counted(["dbcl"])
    told = f"The papers print {printed} results, of which {here} are on these pages and {printed - here} are not"
    assert told in texts[FRONT]
    assert f"[{LEFT_OUT}]({LEFT})" in texts[FRONT]
    assert texts[LEFT].startswith(f"# {LEFT_OUT}\n")
    assert "| dbcl | Table 1 | 20 | 20 | 0 |" in texts[LEFT]
    assert "| baffle |" not in texts[LEFT]  # which the toy is not of
    assert LEFT not in pages(gather(tmp_path, tmp_path), None, "dbcl/toy: red")


@pytest.fixture(scope="module")
def at_hand() -> Gathered:
    """What the parts beside the published page give."""
    return gather(ROOT / "nothing", REPORT)


def test_the_pages_at_hand_are_what_the_parts_beside_them_give(at_hand: Gathered) -> None:
    texts = pages(at_hand, ("numbers.png", alt(at_hand.all)), "")
    assert len(at_hand.parts) > 100
    assert texts == {path.name: path.read_text() for path in PAGES_AT_HAND}


def test_a_page_at_hand_is_short_enough_to_be_read() -> None:
    assert all(path.stat().st_size <= 100_000 for path in PAGES_AT_HAND)
    assert len((REPORT / FRONT).read_text().splitlines()) <= 75


def test_what_does_not_come_back_has_its_cause_or_says_that_none_was_found(at_hand: Gathered) -> None:
    apart = [one for one in at_hand.all if one.verdict in APART]
    assert apart
    told = "".join(path.read_text() for path in PAGES_AT_HAND)
    for one in apart:
        assert one.cause or words.why(one) == NOT_FOUND
        assert f" {words.why(one)} |" in told
    assert all(words.why(one) for one in at_hand.all if one.verdict == "not comparable")


def test_the_row_of_every_cause_is_a_row_of_a_table() -> None:
    rows = {(table, published.piece) for table, published in every_published_number()}
    for table, published in every_published_number():
        for cause in published.causes:
            assert cause.text
            if cause.row:
                head, _, tail = cause.row.partition(": ")
                place = (head, tail) if head in TABLES else (table, cause.row)
                assert place in rows - {(table, published.piece)}, (published.piece, cause)


def test_a_cause_counts_while_the_number_comes_back_in_its_row(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cause_of_red_one(*causes: Cause, ours: float, other: float) -> str:
        first, second, third = toy_table.TABLE.published
        numbers = (replace(first, causes=causes), replace(second, paper=0.50), third)
        monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, published=numbers))
        put(tmp_path, part(accuracy=ours), part("red, two", accuracy=other))
        return words.why(gather(tmp_path, tmp_path).comparisons[toy][0])

    row, absent = Cause("the paint", "red, two"), Cause("the wood", "blue, three")
    assert cause_of_red_one(row, ours=0.40, other=0.49) == "the paint (see `red, two`)"
    assert cause_of_red_one(replace(row, row=f"{toy}: red, two"), ours=0.40, other=0.49).startswith("the paint (see")
    nearer = f"in part, the paint (nearer in `red, two`); for the rest, {NOT_FOUND}"
    assert cause_of_red_one(row, ours=0.40, other=0.45) == nearer
    assert cause_of_red_one(row, ours=0.40, other=0.41) == NOT_FOUND
    assert cause_of_red_one(absent, ours=0.40, other=0.49) == NOT_FOUND
    assert cause_of_red_one(absent, Cause("the glue: page 3"), ours=0.40, other=0.49) == "the glue: page 3"
    assert cause_of_red_one(row, ours=0.49, other=0.49) == ""  # nothing to explain
    elsewhere = Cause("another print", "blue, three", contradiction=True)  # 0.70
    assert cause_of_red_one(elsewhere, ours=0.69, other=0.49) == "another print (see `blue, three`)"
    assert cause_of_red_one(elsewhere, ours=0.60, other=0.49) == NOT_FOUND


def test_the_least_of_several_pieces_is_compared_once_all_are_there(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Published("red, one", paper=0.40, column="accuracy", better="", least_of=("red, two",))
    monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, published=(cell,)))

    def compared() -> tuple[Comparison, int]:
        found = gather(tmp_path, tmp_path)
        return found.comparisons[toy][0], len(found.missing)

    put(tmp_path, part("red, one", accuracy=0.41, seconds=3.0))
    (one, missing) = compared()
    assert (one.verdict, one.ours, one.seeds, missing) == ("not measured", None, (), 1)
    put(tmp_path, part("red, two", accuracy=0.90, seconds=5.0))
    (one, missing) = compared()
    assert (one.verdict, one.ours, one.seeds, missing) == ("held", Mean(0.41, None, 1), (0,), 0)
    assert one.cpu_seconds == 8.0
    assert one.command == f'bench reproduce {toy} --only "red"'
    assert words.setting(one) == "red"
    put(tmp_path, part("red, two", accuracy=0.10), part("red, two", seed=1, accuracy=0.20))
    (one, _) = compared()
    assert isinstance(one.ours, Mean)
    assert (one.verdict, one.ours.value, one.seeds) == ("differs", pytest.approx(0.15), (0, 1))
    put(tmp_path, part("red, two", accuracy=None, note="diverged"))
    (one, _) = compared()
    assert (one.verdict, one.reason) == ("no result", "diverged")


def test_the_largest_differences_are_one_for_each_cause() -> None:
    def line(ours: float, cause: str, published: Published = SHARE) -> Comparison:
        mine = Mean(ours, None, 1)
        return Comparison(
            TABLE, published=published, ours=mine, verdict="differs", seeds=(0,), cpu_seconds=1.0, cause=cause
        )

    lines = [line(0.5, "a"), line(0.6, "a"), line(0.4, ""), line(200, "b", COUNT), line(0.7, "c")]
    found = farthest(lines, 3)
    assert [(place.comparison, place.others) for place in found] == [(lines[2], 0), (lines[0], 1), (lines[3], 0)]


def test_scatter_is_of_shares_with_several_seeds() -> None:
    def line(ours: Mean, published: Published = SHARE) -> Comparison:
        return Comparison(TABLE, published=published, ours=ours, verdict="held", seeds=(0,), cpu_seconds=1.0)

    ones = [line(mean_of(0.8, error=0.01)), line(Mean(0.8, None, 1)), line(mean_of(90, error=9), COUNT)]
    ones.append(line(mean_of(0.8, error=0.2), replace(SHARE, apart="other data")))
    assert scatter(ones) == (pytest.approx(0.01 * math.sqrt(3)), 1)
    assert scatter(ones[1:]) is None


def test_every_table_of_a_paper_with_groups_is_in_one() -> None:
    for paper, groups in GROUPS.items():
        own = [table for table in TABLES if table.startswith(f"{paper}/")]
        grouped = [f"{paper}/{name}" for tables in groups.values() for name in tables]
        assert set(grouped) <= set(own)
        assert all(page_of(table) != f"{paper}.md" for table, _ in every_published_number() if table in own)
    assert page_of("two-stage/table6") == "two-stage-gamma.md"
    assert page_of("baffle/table1") == "baffle.md"
