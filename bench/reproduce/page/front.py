"""The front page, one screen: how much comes back, the largest differences, and how verdicts come about."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from fedarena import __version__
from fedarena.core.text.markdown import code
from fedarena.core.text.numbers import plural
from fedarena.reproduce.left_out import counted
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Comparison, Gathered
from fedarena.reproduce.page.layout import LEFT, page_of, paper_of
from fedarena.reproduce.page.order import expected
from fedarena.reproduce.page.tallies import COMPARED, LEFT_OUT, counts, farthest, markdown, papers_of, scatter
from fedarena.reproduce.page.verdict import ERRORS, SHARE, WIDE
from fedarena.reproduce.published import NOT_FOUND

MOST = 5
"""The number of largest differences that the front page shows."""

RULE = f"""Ours is the mean over seeds. The standard error is that of the difference: of our seeds, and of the authors'
runs where their logs tell it (after ±, the standard deviation of one run). Where ours has one seed, it is taken to
scatter as the authors' runs do. Without such a log the line says `{words.ONE_SEED}`, and the tolerance alone decides.

- **held**: the difference is at most the tolerance, or at most two standard errors where these are more. The tolerance
  is {SHARE:g} for shares (accuracies, AUCs) and a tenth of the paper's number for everything else.
- **better**, **differs**: neither. The line's last column has the cause that a measurement has shown, with the row in
  which it is taken away and the number comes back ("see"), or "{NOT_FOUND}". Better is no praise.
- **open**: two standard errors reach farther than {WIDE:g} tolerances and decide nothing.
- **not comparable**: measured on something else than the paper's, which the last column names.
- **no result**: no number came out. **not measured**: nothing is there.

Two standard errors of three seeds miss the truth about once in five times (Student's t), so that a few lines differ by
chance. What a paper says in words has bounds, which the line states. A number that follows from two printed ones is
marked as derived."""


def front(gathered: Gathered, picture: tuple[str, str] | None, only: str) -> str:
    """The page; for the arguments see `fedarena.reproduce.page.page.pages`."""
    every = gathered.all
    confined = f" Only what begins with `{only}`: `bench reproduce --all` gathers all." if only else ""
    parts = [
        "# The papers' numbers, and ours",
        f"{plural(len(every), 'line')} set a number that a paper or its authors' logs print beside what is measured "
        "here. A number has a line for each variant of ours that stands beside it."
        f"{confined}",
        _overview(gathered),
        *_farthest(every),
        "## How verdicts come about",
        RULE,
        *_scatter(every),
        "## Measuring it again",
        code(["bench reproduce --all" + (f' --only "{only}"' if only else "")]),
        "gathers what is there. `--measure` measures what is missing, the cheapest first, and `--within MINUTES` as "
        "much of it as fits. The command of a line stands over its table.",
        *_missing(gathered),
        *([] if only else [_share(gathered)]),
        *_without(gathered),
        *_complaints(gathered),
        _measured_where(gathered),
    ]
    if picture is not None:
        parts.append(f"![{picture[1]}]({picture[0]})")
    return "\n\n".join(parts) + "\n"


def _overview(gathered: Gathered) -> str:
    """A line for each paper, and one for all."""
    own: dict[str, list[Comparison]] = {}
    files: dict[str, list[str]] = {}
    for table, comparisons in gathered.comparisons.items():
        own.setdefault(paper_of(table), []).extend(comparisons)
        files.setdefault(paper_of(table), []).append(page_of(table))
    rows = []
    for paper, lines in [*own.items(), ("all", gathered.all)]:
        tally = counts(lines)
        compared = sum(tally[verdict] for verdict in COMPARED)
        share = f" ({tally['held'] / compared:.0%})" if compared else ""
        links = ", ".join(f"[{file.removesuffix('.md')}]({file})" for file in dict.fromkeys(files.get(paper, ())))
        numbers = [str(tally[verdict] or "") for verdict in (*COMPARED[1:], "not comparable", "not measured")]
        rows.append([paper, str(compared), f"{tally['held']}{share}", *numbers, links])
    head = ["paper", "measured and comparable", *COMPARED, "not comparable", "not measured", "pages"]
    return markdown(head, rows)


def _farthest(comparisons: Sequence[Comparison]) -> list[str]:
    found = farthest(comparisons, MOST)
    if not found:
        return []
    rows = [
        [
            f"[{one.table}]({page_of(one.table)}): {one.published.setting}",
            one.published.shown,
            words.number(one),
            words.difference(one),
            words.why(one),
            str(place.others or ""),
        ]
        for place in found
        for one in (place.comparison,)
    ]
    return [
        "## The largest differences, and why",
        "The largest in tolerances, one for each cause; others: how many more lines have that cause. What no cause was "
        "found for is taken together by table, whose notes say what is known.",
        markdown(["line", "paper", "ours", "difference", "why", "others"], rows),
    ]


def _scatter(comparisons: Sequence[Comparison]) -> list[str]:
    """Why the tolerance of shares is what it is."""
    found = scatter(comparisons)
    if found is None:
        return []
    deviation, number = found
    chance = ERRORS * deviation * sqrt(2 / 3)
    return [
        f"Why {SHARE:g}: a run of ours scatters over seeds by {deviation:.4f} (standard deviation, the median of "
        f"{plural(number, 'share')} with several seeds). Two standard errors between two means of three runs are "
        f"{chance:.3f} then, and a number that a paper prints with two digits is off by up to .005 besides."
    ]


def _share(gathered: Gathered) -> str:
    """A sentence on how many of the papers' numbers are on the page."""
    printed, here = counted(papers_of(gathered))
    return (
        f"The papers print {printed} results, of which {here} are on these pages and {printed - here} are not. Which "
        f"these are, and why: [{LEFT_OUT}]({LEFT})."
    )


def _missing(gathered: Gathered) -> list[str]:
    if not gathered.missing:
        return []
    times = [expected(key, gathered.times) for key in gathered.missing]
    known = [t for t in times if t is not None]
    return [
        f"{missing(len(times), known)} Expected times are those of parts of the same paper whose names begin most "
        "alike."
    ]


def _without(gathered: Gathered) -> list[str]:
    if not gathered.without:
        return []
    listed = ", ".join(f"`{name}`" for name in gathered.without)
    return [f"Tables without a paper's number: {listed}."]


def _complaints(gathered: Gathered) -> list[str]:
    if not gathered.complaints:
        return []
    return ["## Files that were not used", "\n".join(f"- {complaint}" for complaint in gathered.complaints)]


def _measured_where(gathered: Gathered) -> str:
    if not gathered.parts:
        return f"Nothing was measured yet; fedarena {__version__}."
    seconds = sum(part.cpu_seconds for part in gathered.parts)
    versions = sorted({str(part.environment["fedarena"]) for part in gathered.parts})
    commits = {part.environment.get("commit") for part in gathered.parts}
    devices = sorted({part.device for part in gathered.parts})
    return (
        f"What is there took {words.duration(seconds)} of CPU time, in {plural(len(gathered.parts), 'part')} by "
        f"fedarena {', '.join(versions)} ({plural(len(commits), 'commit')}) on {', '.join(devices)}; `parts.jsonl` has "
        "them all, each with its commit and machine. A run that stands in several tables is measured once."
    )


def missing(parts: int, known: Sequence[float]) -> str:
    """A sentence on how many parts are missing and how long they are expected to take."""
    if not known:
        return f"{parts} parts are missing; how long they take is not known."
    rest = f", not known for {parts - len(known)}" if len(known) < parts else ""
    return f"{parts} parts are missing; expected: {words.duration(sum(known))} of CPU time for {len(known)}{rest}."
