"""The page in markdown: a front page of one screen, a page for each paper, and what the papers print besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedarena.core import registry
from fedarena.core.text.markdown import code
from fedarena.core.text.numbers import plural
from fedarena.reproduce.left_out import PAPERS, Printed
from fedarena.reproduce.page import words
from fedarena.reproduce.page.front import front
from fedarena.reproduce.page.gather import Comparison, Gathered
from fedarena.reproduce.page.layout import EXTERNAL, FRONT, LEFT, page_of, paper_of
from fedarena.reproduce.page.order import expected
from fedarena.reproduce.page.parts import PartKey
from fedarena.reproduce.page.tallies import LEFT_OUT, counts, markdown, papers_of
from fedarena.reproduce.page.verdict import VERDICTS

COUNTED = """Counted are results, each once, however many lines it has on the pages: the cells of tables, and numbers of
a text that stand in no table. Not counted are settings, plots, and a text's ranges and rough figures. Numbers from
authors' logs, derived ones and what a text says in words of a plot have lines on the pages, but are not counted
either."""

SEVERAL = "number"
"""The heading that is needed where a table has several columns of numbers."""


def pages(gathered: Gathered, picture: tuple[str, str] | None, only: str) -> dict[str, str]:
    """File → text of every page.

    Args:
        picture: its file and its alt text; None where there is nothing to draw.
        only: the beginning of the names that the pages are confined to; "" for all.
    """
    by_file: dict[str, list[str]] = {}
    for table in gathered.comparisons:
        by_file.setdefault(page_of(table), []).append(table)
    texts = {FRONT: front(gathered, picture, only)}
    texts |= {file: _sheet(tables, gathered) for file, tables in by_file.items()}
    return texts if only else texts | {LEFT: _left_out(gathered)}


def _sheet(tables: Sequence[str], gathered: Gathered) -> str:
    """The page of tables of one paper."""
    paper = paper_of(tables[0])
    tallies = {table: counts(gathered.comparisons[table]) for table in tables}
    shown = [verdict for verdict in VERDICTS if any(tally[verdict] for tally in tallies.values())]
    rows = [[f"[{table}](#{anchor(table)})", *(str(tally[v] or "") for v in shown)] for table, tally in tallies.items()]
    parts = [
        f"# {_heading(paper)}",
        f"Each line sets a number of the paper beside ours; [the front page]({FRONT}) says how verdicts come about. A "
        "line is measured again by the command over its table, with the line's seeds as SEEDS, and what stands before "
        "its first semicolon as SETTING. Where that is no whole name of a run, it measures all whose names begin so.",
        markdown(["lines", *shown], rows),
    ]
    for table in tables:
        parts += _table(table, gathered)
    return "\n\n".join(parts) + "\n"


def _heading(paper: str) -> str:
    """What a page is on: a paper with its authors, or what others than the four papers print."""
    if paper == EXTERNAL:
        return "Tables of other papers and libraries"
    card = registry.find("defense", paper)
    return f"`{paper}`: {card.authors}, {card.year}, {card.paper}"


def anchor(heading: str) -> str:
    """What a link to a heading ends with."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in "-_ ").replace(" ", "-")


def _table(table: str, gathered: Gathered) -> list[str]:
    comparisons = gathered.comparisons[table]
    measured = [one for one in comparisons if one.verdict != "not measured"]
    absent = [one for one in comparisons if one.verdict == "not measured"]
    notes = [f"- {note}" for note in gathered.notes.get(table, ())]
    return [
        f"## {table}",
        gathered.settings[table],
        *(["\n".join(notes)] if notes else []),
        code([_command(table, comparisons)]),
        *_measured(measured),
        *_absent(absent, gathered),
    ]


def _command(table: str, comparisons: Sequence[Comparison]) -> str:
    """The command of any line of the table."""
    selects = "" if all(one.published.piece == "all" for one in comparisons) else ' --only "SETTING"'
    return f"bench reproduce {table}{selects} --seeds SEEDS"


def _measured(comparisons: Sequence[Comparison]) -> list[str]:
    """The lines that are measured, without columns that have nothing to say."""
    if not comparisons:
        return []
    columns = _columns(comparisons)
    if len(set(columns[SEVERAL])) == 1:
        del columns[SEVERAL]
    shared = columns["why"][0] if len(comparisons) > 1 and len(set(columns["why"])) == 1 else ""
    if shared:
        del columns["why"]
    columns = {head: cells for head, cells in columns.items() if any(cells)}
    lines = markdown(list(columns), [list(cells) for cells in zip(*columns.values(), strict=True)])
    return [*([f"Of all lines: {shared}."] if shared else []), lines]


def _columns(comparisons: Sequence[Comparison]) -> dict[str, list[str]]:
    """Heading → cells of the lines that are measured."""
    source = _one_source(comparisons)
    cells: dict[str, Callable[[Comparison], str]] = {
        "setting": words.setting,
        SEVERAL: lambda one: one.published.column,
        source or "paper": lambda one: one.published.number if source else one.published.shown,
        "ours": words.number,
        "difference": words.difference,
        "standard error": words.standard_error,
        "verdict": lambda one: str(one.verdict),
        "seeds": words.seeds,
        "CPU time": lambda one: words.duration(one.cpu_seconds),
        "why": words.why,
    }
    return {head: [cell(one) for one in comparisons] for head, cell in cells.items()}


def _one_source(comparisons: Sequence[Comparison]) -> str:
    """The source that all numbers have, which is said once in the heading; "" if they have several, or none."""
    sources = {one.published.source for one in comparisons}
    return sources.pop() if len(sources) == 1 and not any(one.published.derived for one in comparisons) else ""


def _absent(comparisons: Sequence[Comparison], gathered: Gathered) -> list[str]:
    """The lines that are not measured, as a list by the first word of their settings."""
    if not comparisons:
        return []
    several, source = len({one.published.column for one in comparisons}) > 1, _one_source(comparisons)
    groups: dict[str, list[str]] = {}
    for one in comparisons:
        first, _, rest = words.setting(one).partition(", ")
        number = f"{one.published.column} " if several else ""
        printed = one.published.number if source else one.published.shown
        groups.setdefault(first if rest else "", []).append(f"{rest or first}: {number}{printed}")
    keys = dict.fromkeys(PartKey(one.table, piece, 0) for one in comparisons for piece in one.published.pieces)
    times = [t for t in (expected(key, gathered.times) for key in keys) if t is not None]
    unknown = len(keys) - len(times)
    rest = f", unknown for {plural(unknown, 'part')}" if unknown and times else ""
    many = f"{plural(len(comparisons), 'line')}{f' of the {source}' if source else ''} not measured"
    takes = f"expected CPU time: {words.duration(sum(times) if times else None)}{rest}"
    listed = "\n".join(f"- {f'{first}, ' if first else ''}{' / '.join(lines)}" for first, lines in groups.items())
    return [f"<details><summary>{many} ({takes})</summary>\n\n{listed}\n\n</details>"]


def _left_out(gathered: Gathered) -> str:
    """The page on what the papers print, how much of it is on the other pages, and why the rest is not."""
    rows = [
        [paper, one.where, *_amounts(one), one.what, one.why, ", ".join(f"`{table}`" for table in one.tables)]
        for paper in papers_of(gathered)
        for one in PAPERS[paper]
    ]
    head = ["paper", "where", "printed", "on these pages", "not here", "what is not here", "why", "lines under"]
    return "\n\n".join([f"# {LEFT_OUT}", COUNTED, markdown(head, rows)]) + "\n"


def _amounts(one: Printed) -> list[str]:
    return ["-"] * 3 if one.numbers is None else [str(one.numbers), str(one.here), str(one.left)]
