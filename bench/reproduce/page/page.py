"""The page in markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fedarena import __version__
from fedarena.core import registry
from fedarena.core.text.markdown import table as table_of
from fedarena.core.text.numbers import plural
from fedarena.reproduce.left_out import PAPERS, Printed, counted
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Comparison, Gathered
from fedarena.reproduce.page.order import expected
from fedarena.reproduce.page.parts import PartKey
from fedarena.reproduce.page.verdict import VERDICTS, WIDE

LEFT_OUT = "What the papers print and this page does not have"
COUNTED = """Counted are results, each once, however many lines it has above: the cells of tables, and numbers of a text
that stand in no table. Not counted are settings, plots, and a text's ranges and rough figures. Numbers from authors'
logs, derived ones and what a text says in words of a plot have lines above, but are not counted either."""

RULE = f"""- **held**: ours differs from the paper's number by no more than the tolerance, which is one percentage point
  for shares (accuracies, AUCs) and a tenth of the paper's number for everything else; or the paper's number, give or
  take half of its last printed digit, lies within our 95 % interval (Student's t over two seeds or more).
- **open**: the latter, but the interval reaches further than {WIDE:g} tolerances to either side and decides nothing.
- **better** or **differs**: neither; ours is on the better side of the paper's number, or it is not. Better is no
  praise: it is not what the paper has either.
- **not comparable**: measured, but not on what the paper measured; the setting says what is different.
- **no result**: measured, and no number came out. **not measured**: nothing is there.

One seed has no interval: its verdict goes by the tolerance alone, and chance may account for it. What a paper says in
words has bounds, which the setting states; our mean lies within them (held) or it does not (differs). Differences are
ours less the paper's as it stands here; a number that the paper does not print, but that follows from two that it
prints, is marked as derived. Time is CPU time of the part that holds the number, of all seeds together; a part may hold
several numbers. A command measures its line, and whatever else of that table has a name that begins so."""


def page(gathered: Gathered, picture: tuple[str, str] | None, only: str) -> str:
    """The whole page.

    Args:
        picture: its file and its alt text; None where there is nothing to draw.
        only: the beginning of the names that the page is confined to; "" for all.
    """
    every = gathered.all
    measured = [one for one in every if one.verdict != "not measured"]
    confined = f" Only what begins with `{only}`: `bench reproduce --all` gathers all." if only else ""
    parts = [
        "# The papers' numbers, and ours",
        f"{len(every)} lines, each a number that a paper or its authors' logs print, or one derived from printed "
        f"numbers, beside what is measured here: {len(measured)} are measured, {len(every) - len(measured)} are not. A "
        f"number that several variants of ours stand beside has a line for each.{confined}",
        *([] if only else [_share(gathered)]),
        "Written by",
        _block("bench reproduce --all" + (f' --only "{only}"' if only else "")),
        "from what is there; `--measure` measures what is not, and `--within MINUTES` as much of it as fits.",
        _overview(gathered),
        "## How verdicts come about",
        RULE,
    ]
    if picture is not None:
        parts.append(f"![{picture[1]}]({picture[0]})")
    paper = ""
    for table in gathered.comparisons:
        if table.partition("/")[0] != paper:
            paper = table.partition("/")[0]
            parts.append(f"## {_citation(paper)}")
        parts += _table(table, gathered)
    if not only:
        parts += _left_out(gathered)
    parts += _rest(gathered)
    return "\n\n".join(parts) + "\n"


def counts(comparisons: Iterable[Comparison]) -> dict[str, int]:
    """Verdict → number of comparisons that have it, for all verdicts in their order."""
    tally = Counter(one.verdict for one in comparisons)
    return {verdict: tally[verdict] for verdict in VERDICTS}


def _overview(gathered: Gathered) -> str:
    rows = []
    for paper in dict.fromkeys(table.partition("/")[0] for table in gathered.comparisons):
        own = [one for one in gathered.all if one.table.startswith(f"{paper}/")]
        rows.append([paper, str(len(own)), *(str(n or "") for n in counts(own).values())])
    rows.append(["all", str(len(gathered.all)), *(str(n or "") for n in counts(gathered.all).values())])
    return markdown(["paper", "lines", *VERDICTS], rows)


def _papers(gathered: Gathered) -> list[str]:
    return [paper for paper in PAPERS if any(table.startswith(f"{paper}/") for table in gathered.comparisons)]


def _share(gathered: Gathered) -> str:
    """A sentence on how many of the papers' numbers are on the page."""
    printed, here = counted(_papers(gathered))
    anchor = LEFT_OUT.lower().replace(" ", "-")
    return (
        f"Lines are not the papers' numbers: the papers print {printed} results, of which {here} are on this page and "
        f"{printed - here} are not. Which these are, and why, stands under [{LEFT_OUT}](#{anchor}), with the plots, "
        "which print no numbers."
    )


def _left_out(gathered: Gathered) -> list[str]:
    """The section on what the papers print, how much of it is on the page, and why the rest is not."""
    rows = [
        [paper, one.where, *_amounts(one), one.what, one.why, ", ".join(f"`{table}`" for table in one.tables)]
        for paper in _papers(gathered)
        for one in PAPERS[paper]
    ]
    head = ["paper", "where", "printed", "on this page", "not here", "what is not here", "why", "lines under"]
    return [f"## {LEFT_OUT}", COUNTED, markdown(head, rows)]


def _amounts(one: Printed) -> list[str]:
    return ["-"] * 3 if one.numbers is None else [str(one.numbers), str(one.here), str(one.left)]


def _citation(name: str) -> str:
    card = registry.find("defense", name)
    return f"`{name}`: {card.authors}, {card.year}, {card.paper}"


def _table(table: str, gathered: Gathered) -> list[str]:
    comparisons = gathered.comparisons[table]
    measured = [one for one in comparisons if one.verdict != "not measured"]
    absent = [one for one in comparisons if one.verdict == "not measured"]
    return [f"### {table}", gathered.settings[table], *_measured(measured), *_absent(absent, gathered)]


def _measured(comparisons: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return []
    head = ["setting", "number", "paper", "ours", "95 % interval", "difference", "verdict", "seeds", "CPU time"]
    rows = [
        [
            words.setting(one),
            one.published.column,
            one.published.shown,
            words.number(one),
            words.interval(one),
            words.difference(one),
            one.verdict,
            words.seeds(one),
            words.duration(one.cpu_seconds),
            f"`{one.command}`",
        ]
        for one in comparisons
    ]
    return [markdown([*head, "command"], rows)]


def _absent(comparisons: Sequence[Comparison], gathered: Gathered) -> list[str]:
    if not comparisons:
        return []
    rows = [
        [
            words.setting(one),
            one.published.column,
            one.published.shown,
            words.duration(expected(PartKey(one.table, one.published.piece, 0), gathered.times)),
            f"`{one.command}`",
        ]
        for one in comparisons
    ]
    listed = markdown(["setting", "number", "paper", "expected CPU time", "command"], rows)
    many = f"{len(rows)} line{'s' if len(rows) > 1 else ''} not measured"
    return [f"<details><summary>{many}</summary>\n\n{listed}\n\n</details>"]


def _rest(gathered: Gathered) -> list[str]:
    return [*_missing(gathered), *_without(gathered), *_complaints(gathered), *_measured_where(gathered)]


def _missing(gathered: Gathered) -> list[str]:
    if not gathered.missing:
        return []
    times = [expected(key, gathered.times) for key in gathered.missing]
    known = [t for t in times if t is not None]
    return [
        "## What is missing",
        f"{missing(len(times), known)} Expected times are those of parts of the same paper whose names begin most "
        "alike; a guess, no more.",
    ]


def _without(gathered: Gathered) -> list[str]:
    if not gathered.without:
        return []
    listed = ", ".join(f"`{name}`" for name in gathered.without)
    return [
        "## Tables without a paper's number",
        f"{listed}: what they measure no paper has printed a number of, or not on anything that is at hand here.",
    ]


def _complaints(gathered: Gathered) -> list[str]:
    if not gathered.complaints:
        return []
    return ["## Files that were not used", "\n".join(f"- {complaint}" for complaint in gathered.complaints)]


def _measured_where(gathered: Gathered) -> list[str]:
    title = "## Where it was measured"
    if not gathered.parts:
        return [title, f"Nothing was measured yet; fedarena {__version__}."]
    seconds = sum(part.cpu_seconds for part in gathered.parts)
    versions = {
        f"{part.environment['fedarena']} at {part.environment.get('commit') or 'no commit'}"
        + (f" on {part.device}" if part.device != "cpu" else "")
        for part in gathered.parts
    }
    return [
        title,
        f"fedarena {', '.join(sorted(versions))}; {plural(len(gathered.parts), 'part')}, "
        f"{words.duration(seconds)} of CPU time. A run that stands in several tables is measured once.",
    ]


def missing(parts: int, known: Sequence[float]) -> str:
    """A sentence on how many parts are missing and how long they are expected to take."""
    if not known:
        return f"{parts} parts are missing; how long they take is not known."
    rest = f", not known for {parts - len(known)}" if len(known) < parts else ""
    return f"{parts} parts are missing; expected: {words.duration(sum(known))} of CPU time for {len(known)}{rest}."


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return table_of(head, [[cell.replace("|", "\\|") for cell in row] for row in rows])


def _block(command: str) -> str:
    return f"```sh\n{command}\n```"
