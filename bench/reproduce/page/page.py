"""The page of fidelity, in markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fedarena import __version__
from fedarena.core import registry
from fedarena.core.text.markdown import table as table_of
from fedarena.core.text.plural import plural
from fedarena.reproduce.left_out import PAPERS, Printed, counted
from fedarena.reproduce.page import words
from fedarena.reproduce.page.gather import Gathered, Line
from fedarena.reproduce.page.order import expected
from fedarena.reproduce.page.parts import Asked
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


def page(found: Gathered, picture: tuple[str, str] | None, only: str) -> str:
    """The whole page.

    Args:
        picture: its file and its alt text; None where there is nothing to draw.
        only: how the names begin to which the page is confined; "" where it is not.
    """
    lines = found.all
    there = [line for line in lines if line.verdict != "not measured"]
    confined = f" Only what begins with `{only}`: `bench reproduce --all` gathers all." if only else ""
    parts = [
        "# The papers' numbers, and ours",
        f"{len(lines)} lines, each a number that a paper or its authors' logs print, or one derived from printed "
        f"numbers, beside what is measured here: {len(there)} are measured, {len(lines) - len(there)} are not. A "
        f"number that several variants of ours stand beside has a line for each.{confined}",
        *([] if only else [_share(found)]),
        "Written by",
        _block("bench reproduce --all" + (f' --only "{only}"' if only else "")),
        "from what is there; `--measure` measures what is not, and `--within MINUTES` as much of it as fits.",
        _overview(found),
        "## How verdicts come about",
        RULE,
    ]
    if picture is not None:
        parts.append(f"![{picture[1]}]({picture[0]})")
    paper = ""
    for table in found.lines:
        if table.partition("/")[0] != paper:
            paper = table.partition("/")[0]
            parts.append(f"## {_citation(paper)}")
        parts += _table(table, found)
    if not only:
        parts += _left_out(found)
    parts += _rest(found)
    return "\n\n".join(parts) + "\n"


def counts(lines: Iterable[Line]) -> dict[str, int]:
    """Verdict → how many lines have it, all verdicts in their order."""
    tally = Counter(line.verdict for line in lines)
    return {verdict: tally[verdict] for verdict in VERDICTS}


def _overview(found: Gathered) -> str:
    rows = []
    for paper in dict.fromkeys(table.partition("/")[0] for table in found.lines):
        own = [line for table, lines in found.lines.items() if table.startswith(f"{paper}/") for line in lines]
        rows.append([paper, str(len(own)), *(str(n or "") for n in counts(own).values())])
    rows.append(["all", str(len(found.all)), *(str(n or "") for n in counts(found.all).values())])
    return markdown(["paper", "lines", *VERDICTS], rows)


def _papers(found: Gathered) -> list[str]:
    return [paper for paper in PAPERS if any(table.startswith(f"{paper}/") for table in found.lines)]


def _share(found: Gathered) -> str:
    """How many of the papers' numbers are on the page."""
    printed, here = counted(_papers(found))
    anchor = LEFT_OUT.lower().replace(" ", "-")
    return (
        f"Lines are not the papers' numbers: the papers print {printed} results, of which {here} are on this page and "
        f"{printed - here} are not. Which these are, and why, stands under [{LEFT_OUT}](#{anchor}), with the plots, "
        "which print no numbers."
    )


def _left_out(found: Gathered) -> list[str]:
    """What the papers print, how much of it is on the page, and why the rest is not."""
    rows = [
        [paper, one.where, *_amounts(one), one.what, one.why, ", ".join(f"`{table}`" for table in one.tables)]
        for paper in _papers(found)
        for one in PAPERS[paper]
    ]
    head = ["paper", "where", "printed", "on this page", "not here", "what is not here", "why", "lines under"]
    return [f"## {LEFT_OUT}", COUNTED, markdown(head, rows)]


def _amounts(one: Printed) -> list[str]:
    return ["-"] * 3 if one.numbers is None else [str(one.numbers), str(one.here), str(one.left)]


def _citation(name: str) -> str:
    card = registry.find("defense", name)
    return f"`{name}`: {card.authors}, {card.year}, {card.paper}"


def _table(table: str, found: Gathered) -> list[str]:
    lines = found.lines[table]
    there = [line for line in lines if line.verdict != "not measured"]
    lacking = [line for line in lines if line.verdict == "not measured"]
    parts = [f"### {table}", found.settings[table]]
    if there:
        head = ["setting", "number", "paper", "ours", "95 % interval", "difference", "verdict", "seeds", "CPU time"]
        rows = [
            [
                *(words.setting(line), line.published.column, line.published.shown, words.number(line)),
                *(words.interval(line), words.difference(line), line.verdict, words.seeds(line)),
                *(words.duration(line.cpu_seconds), f"`{line.command}`"),
            ]
            for line in there
        ]
        parts.append(markdown([*head, "command"], rows))
    if lacking:
        rows = [
            [
                *(words.setting(line), line.published.column, line.published.shown),
                words.duration(expected(Asked(table, line.published.piece, 0), found.times)),
                f"`{line.command}`",
            ]
            for line in lacking
        ]
        listed = markdown(["setting", "number", "paper", "expected CPU time", "command"], rows)
        many = f"{len(lacking)} line{'s' if len(lacking) > 1 else ''} not measured"
        parts.append(f"<details><summary>{many}</summary>\n\n{listed}\n\n</details>")
    return parts


def _rest(found: Gathered) -> list[str]:
    parts = []
    if found.missing:
        times = [expected(one, found.times) for one in found.missing]
        known = [t for t in times if t is not None]
        parts += [
            "## What is missing",
            f"{missing(len(times), known)} Expected times are those of parts of the same paper whose names begin most "
            "alike; a guess, no more.",
        ]
    if found.without:
        listed = ", ".join(f"`{name}`" for name in found.without)
        parts += [
            "## Tables without a paper's number",
            f"{listed}: what they measure no paper has printed a number of, or not on anything that is at hand here.",
        ]
    if found.complaints:
        parts += ["## Files that were not used", "\n".join(f"- {one}" for one in found.complaints)]
    if found.parts:
        seconds = sum(part.cpu_seconds for part in found.parts)
        made = {
            f"{p.environment['fedarena']} at {p.environment.get('commit') or 'no commit'}"
            + (f" on {p.device}" if p.device != "cpu" else "")
            for p in found.parts
        }
        parts += [
            "## Where it was measured",
            f"fedarena {', '.join(sorted(made))}; {plural(len(found.parts), 'part')}, "
            f"{words.duration(seconds)} of CPU time. A run that stands in several tables is measured once.",
        ]
    else:
        parts += ["## Where it was measured", f"Nothing was measured yet; fedarena {__version__}."]
    return parts


def missing(parts: int, known: Sequence[float]) -> str:
    """How many parts are missing and how long they are expected to take, in words."""
    if not known:
        return f"{parts} parts are missing; how long they take is not known."
    rest = f", not known for {parts - len(known)}" if len(known) < parts else ""
    return f"{parts} parts are missing; expected: {words.duration(sum(known))} of CPU time for {len(known)}{rest}."


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return table_of(head, [[cell.replace("|", "\\|") for cell in row] for row in rows])


def _block(command: str) -> str:
    return f"```sh\n{command}\n```"
