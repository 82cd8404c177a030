"""A board as one page of markdown: what it is, what it shows, what it leaves open, and how each part is made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.advice import advice
from fedarena.board.board import Arena, Board, Honest
from fedarena.board.markdown import ranking
from fedarena.board.report.cells import attack_tables
from fedarena.board.report.cited import method_cards
from fedarena.board.report.drawn import Drawn
from fedarena.board.report.gaps import could_not_start, limits, without_result
from fedarena.board.standing import Cut, standings
from fedarena.board.words import DAGGER, HOW, NOTHING, interval, made, seeds, times
from fedarena.core.text.markdown import code, escape, folded, items, table
from fedarena.core.text.mean import mean
from fedarena.core.text.numbers import MEASURES, level

COMMON: dict[str, Cut] = {
    "malicious clients, curious server": Cut(parties=("server",)),
    "malicious clients, nobody curious": Cut(parties=()),
    "curious server, honest clients": Cut(parties=("server",), knows=()),
    "curious client, the others honest": Cut(parties=("client",), knows=()),
    "somebody who listens on the wire": Cut(parties=("eavesdropper",), knows=()),
    "anybody who uses the finished model": Cut(parties=("outsider",), knows=()),
}
"""Threats that readers come with, beside all at once."""

FIGURES = {
    "scores": ("Scores by defense and attack", "No cells, so there is no map of scores."),
    "rounds": ("Accuracy under attack by round", "No poisoned run has a curve, so none is drawn."),
    "reconstructions": (
        "Originals and reconstructions",
        "No pictures are kept beside these records, so none are shown.",
    ),
    "roc": ("ROC curves", "No record holds the curve of an attack that ranks, so none is drawn."),
    "epsilon": ("Privacy against ε", "No protocol here promises an ε and has a privacy score, so none is drawn."),
    "cost": (
        "Cost against score",
        "No defense has both a cost beside FedAvg's and an overall score, so none is drawn.",
    ),
}
"""Figures in order: heading, and what stands there when there is nothing to draw."""


def page(board: Board, figures: Mapping[str, Sequence[Drawn]], commands: Sequence[str]) -> str:
    """The page.

    Args:
        figures: by the names of `FIGURES`.
        commands: how records and report are made; the last is the one that makes the report.
    """
    maker = commands[-1]
    parts = [
        f"# Report: {escape(board.title or board.suite)}",
        _heading(board),
        "## Which defense to take",
        _advice(board),
        "## Ranking",
        ranking(board).rstrip(),
        _by(maker),
        "## With everybody honest",
        _honest(board),
        _by(maker),
    ]
    for name, (title, nothing) in FIGURES.items():
        parts += [f"## {title}", *([_figure(f, maker) for f in figures[name]] or [nothing])]
    parts += [
        "## Every cell",
        "Scores are means over seeds with their 95 % interval (Student's t, cut to [0, 1] and then given by its ends). "
        f"{DAGGER}: the runs are marked, and what must stand beside their numbers is among the limits below.",
        attack_tables(board),
        _by(maker),
        "## What is missing or failed",
        without_result(board),
        "## Attacks that could not start",
        "An attack that has nothing to start from is n/a, which counts as withstood.",
        could_not_start(board),
        "## How the scores are made",
        *HOW,
        "## Limits of this report",
        items([escape(line) for line in limits(board)]),
        "## Methods and sources",
        method_cards(board),
        "## How this report is made",
        code(commands),
        "The commands of single cells stand below the tables of cells. "
        "All numbers come from [board.json](board.json), which holds every cell with its scores by seed, the keys of "
        "its records and its command; the same records give the same report, byte for byte.",
    ]
    return "\n\n".join(parts) + "\n"


def _heading(board: Board) -> str:
    told = [
        "Defenses of federated learning against attacks, each limited to what it would really see. Scores are in "
        "[0, 1], higher is better for the defender.",
        items([_problem(a) for a in board.arenas] or ["No problem: there are no records."]),
        f"Seeds: {seeds(board)}.",
    ]
    told += [f"Made from records of {escape(made(board))}."] if made(board) else []
    told += ["Know first:\n\n" + items([escape(note) for note in board.notes])] if board.notes else []
    return "\n\n".join(told)


def _problem(arena: Arena) -> str:
    values = list(arena.fedavg.values())
    measure = MEASURES[arena.measure]
    reached = f"FedAvg's {measure} {level(mean(values), arena.measure)}" if values else "FedAvg has no result"
    guess = "a constant prediction's" if arena.measure == "R2" else "a constant prediction has"
    at = f"{guess} {arena.chance:.2f}" if arena.measure == "R2" else f"{guess} {100 * arena.chance:.0f} %"
    subset = f"; a subset of the data: {escape(arena.subset)}" if arena.subset else ""
    subset += "" if arena.utility else "; too short or too odd for its accuracy to count as utility"
    return f"**{escape(arena.name)}**: {escape(arena.told)}; {reached}, {at}{subset}"


def _advice(board: Board) -> str:
    told = ["\n\n".join(escape(sentence) for sentence in advice(board))]
    unposed: list[str] = []
    for who, cut in COMMON.items():
        if not any(cut.has(c) for c in board.cells):
            unposed.append(who)
            continue
        rows, words = standings(board, cut), ",".join((*cut.parties, *cut.knows))
        ranked = [row.defense for row in rows if row.rank is not None]
        first = "no defense ranks above none" if ranked[:1] == ["fedavg"] else "".join(ranked[:1])
        title = f"{who[0].upper()}{who[1:]}: {first or 'none can be recommended'}"
        sentences = [escape(sentence) for sentence in advice(board, cut, rows)]
        told.append(folded(title, "\n\n".join([*sentences, f"On a leaderboard: `--threats {words}`."])))
    if unposed and board.cells:
        told.append(f"No attack on this board is that of: {'; '.join(unposed)}.")
    return "\n\n".join(told)


def _honest(board: Board) -> str:
    if not board.honest:
        return "No run in which everybody is honest."
    measures = {a.name: a.measure for a in board.arenas}
    reached_in = " or ".join(MEASURES[m] for m in MEASURES if m in measures.values())
    heads = [
        "problem",
        "defense",
        reached_in,
        "of FedAvg's",
        "bytes up",
        "bytes down",
        "time",
        "promises",
        "marks",
    ]
    rows = []
    for h in board.honest:
        reached, kept = list(h.accuracy.values()), list(h.utility.values())
        row = [escape(h.problem), escape(h.defense)]
        row += [level(mean(reached), measures.get(h.problem, "accuracy")) if reached else escape(_why(h))]
        row += [interval(mean(kept)) if kept else NOTHING]
        row += [f"{n:,.0f}" if h.keys else NOTHING for n in (h.bytes_up, h.bytes_down)]
        row += [times(h.relative_seconds), escape(_promises(h)) or NOTHING, escape("; ".join(h.marks)) or NOTHING]
        rows.append(row)
    lines = list(dict.fromkeys(h.command for h in board.honest if h.command))
    below = "Bytes are per client and round; time is that of training, over FedAvg's."
    return "\n\n".join([table(heads, rows), below, *([code(lines)] if lines else [])])


def _why(h: Honest) -> str:
    return h.status + (f": {h.reason}" if h.reason else "")


def _promises(h: Honest) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in h.guarantees.items())


def _plain(value: float) -> str:
    """Counts in full, anything else to three digits."""
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def _figure(drawn: Drawn, maker: str) -> str:
    return f"![{escape(drawn.alt)}]({drawn.path})\n\n{escape(drawn.caption)} Made by `{maker}`."


def _by(maker: str) -> str:
    return f"Made by `{maker}`."
