"""Every cell, attack by attack: threat, score, metrics, status with its reason, and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.board import Board, BoardCell
from fedarena.board.notes import has_several_problems
from fedarena.board.score_text import DAGGER, NOTHING, interval
from fedarena.core.text.markdown import code, escape, folded, table
from fedarena.core.text.numbers import Mean, mean, number
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS
from fedarena.goals.nodes import FIGURES
from fedarena.goals.text import interval as judged_interval

POISONING = "poisoning"
"""In a goal's place: all attacks that poison."""

SHOWN = {
    "accuracy": "accuracy",
    "attack_success_rate": "trigger succeeds",
    "lifespan": "lifespan in rounds",
    **{name: FIGURES[name].title for name in ("node_worst", "mean_model")},
    "client_lowest_decile": "lowest decile of clients",
    "client_mean": "mean of clients",
    "recovered": "recovered",
    "auc": "AUC",
    "tpr_at_1_percent_fpr": "TPR at 1 % FPR",
    "label_accuracy": "labels right",
    "agreement": "agreement",
    "prior_agreement": "a constant prediction's agreement",
    "top1": "class recognised",
    "cosine": "cosine",
    "ssim": "SSIM",
    "psnr": "PSNR",
}
"""Metrics that the tables show, the first three of those that a cell has; records and board.json hold all."""

SHARES = ("attack_success_rate", "recovered", "auc", "tpr_at_1_percent_fpr", "label_accuracy", "top1")
"""Metrics that are never beyond [0, 1], so that their intervals are clipped there."""


def goals_of(board: Board) -> dict[str, list[str]]:
    """Goal → its attacks, in the order of the cells; poisoning is one goal."""
    goals: dict[str, str] = {}
    for c in board.cells:
        goals.setdefault(c.attack, c.goal or POISONING)
    return {goal: [name for name, its in goals.items() if its == goal] for goal in dict.fromkeys(goals.values())}


def attack_tables(board: Board, attacks: Sequence[str]) -> str:
    """One folded table for each attack."""
    return "\n\n".join(folded(_title(board, attack), _table_and_commands(board, attack)) for attack in attacks)


def ordered(cells: Sequence[BoardCell], board: Board) -> list[BoardCell]:
    """By problem, defense, party, knowledge and form, each in the order that all outputs have."""
    problems, defenses = [p.name for p in board.problems], board.defenses

    def position(c: BoardCell) -> tuple[int, ...]:
        keys = (
            (problems, c.problem),
            (defenses, c.defense),
            (READERS, c.party),
            (KNOWLEDGE, c.knows),
            (FORMS, c.form),
        )
        return tuple(names.index(name) if name in names else len(names) for names, name in keys)

    return sorted(cells, key=position)


def metrics(cell: BoardCell) -> str:
    """ "recovered 0.43 ± 0.05, SSIM 0.61 ± 0.02"."""
    texts, means = [], {name: mean(list(values.values())) for name, values in cell.metrics.items() if values}
    for name in [name for name in SHOWN if cell.metrics.get(name)][:3]:
        least = "≥ " if name == "lifespan" and means["lifespan_is_bound"].value else ""
        texts.append(f"{SHOWN[name]} {least}{_share(means, name) if name in SHARES else number(means[name])}")
    return ", ".join(texts)


def _share(means: Mapping[str, Mean], name: str) -> str:
    """A share with its interval, which is the judge's where it gave one."""
    if f"{name}_low" not in means and means[name].half:
        return interval(means[name])
    ends = judged_interval(means, name)
    return f"{means[name].value:.2f}" if ends is None else f"{means[name].value:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"


def _title(board: Board, attack: str) -> str:
    cells = [c for c in board.cells if c.attack == attack]
    what = "poisoning" if cells[0].axis == "integrity" else "inference"
    by = f", found by {cells[0].found_by}" if cells[0].found_by else ""
    return f"{attack}: {what}, {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{by}"


def _table_and_commands(board: Board, attack: str) -> str:
    """The cells of an attack, and below them each command with the numbers of the rows that it measures."""
    cells, several = ordered([c for c in board.cells if c.attack == attack], board), has_several_problems(board)
    heads = ["#", *(["problem"] if several else []), "defense", "threat", "score", "seeds", "measured", "status"]
    warned = {run.place for run in board.clean_runs if run.warnings}
    rows = []
    commands: dict[str, list[str]] = {}
    for i, c in enumerate(cells, 1):
        row = _row(c, c.warnings != () or (c.problem, c.defense) in warned)
        rows.append([str(i), *(row if several else row[1:])])
        if c.command:
            commands.setdefault(c.command, []).append(str(i))
    block = [f"{command}  # {', '.join(numbers)}" for command, numbers in commands.items()]
    return table(heads, rows) + (f"\n\nTo measure the rows again:\n\n{code(block)}" if block else "")


def _row(c: BoardCell, warned: bool) -> list[str]:
    """A cell, with a dagger where it or its clean run has warnings."""
    scores = list(c.scores.values())
    return [
        escape(c.problem),
        escape(f"{c.defense} {DAGGER}" if warned else c.defense),
        escape(c.threat),
        interval(mean(scores)) if scores else NOTHING,
        str(len(scores)),
        escape(metrics(c)) or NOTHING,
        escape(_status(c)),
    ]


def _status(c: BoardCell) -> str:
    """Status and reason, and the readings of cells with a score."""
    parts = [c.status + (f": {c.reason}" if c.reason else "")]
    parts += [] if c.counts else [f"does not count in scores{f' ({c.excluded})' if c.excluded else ''}"]
    parts += [f"reading: {c.reading}"] if c.reading else []
    others = [f"{name or 'unnamed'} {value:.2f}" for name, value in sorted(c.other_readings.items())]
    parts += [f"other readings: {', '.join(others)}"] if others else []
    parts += [f"warning: {warning}" for warning in c.warnings]
    return "; ".join(parts)
