"""Every cell, attack by attack: who, score, what was measured, status and why, and the command."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.board import Board, Cell
from fedarena.board.words import DAGGER, NOTHING, interval, several
from fedarena.core.text.markdown import code, escape, folded, table
from fedarena.core.text.mean import mean
from fedarena.core.text.numbers import number
from fedarena.core.threat import EVERYONE, FORMS, KNOWLEDGE

SHOWN = {
    "accuracy": "accuracy",
    "attack_success_rate": "trigger succeeds",
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
"""Metrics worth a column, the first three of those that a cell has; all are in the records and in board.json."""

SHARES = ("attack_success_rate", "recovered", "auc", "tpr_at_1_percent_fpr", "label_accuracy", "top1")
"""Never beyond [0, 1], so that their intervals are cut there."""


def attack_tables(board: Board) -> str:
    """One folded table an attack; a sentence where there are no cells."""
    attacks = list(dict.fromkeys(c.attack for c in board.cells))
    found = [folded(_title(board, attack), _table(board, attack)) for attack in attacks]
    return "\n\n".join(found) or "No cells: nothing was attacked."


def ordered(cells: Sequence[Cell], board: Board) -> list[Cell]:
    """By problem, defense, party, knowledge and form, in the order in which each is told of elsewhere."""
    problems, defenses = [a.name for a in board.arenas], board.defenses

    def place(c: Cell) -> tuple[int, ...]:
        known = (
            (problems, c.problem),
            (defenses, c.defense),
            (EVERYONE, c.party),
            (KNOWLEDGE, c.knows),
            (FORMS, c.form),
        )
        return tuple(names.index(name) if name in names else len(names) for names, name in known)

    return sorted(cells, key=place)


def metrics(cell: Cell) -> str:
    """ "recovered 0.43 ± 0.05, SSIM 0.61 ± 0.02"."""
    told = []
    for name in [name for name in SHOWN if cell.metrics.get(name)][:3]:
        value = mean(list(cell.metrics[name].values()))
        told.append(f"{SHOWN[name]} {interval(value) if name in SHARES else number(value)}")
    return ", ".join(told)


def _title(board: Board, attack: str) -> str:
    cells = [c for c in board.cells if c.attack == attack]
    what = "poisoning" if cells[0].axis == "integrity" else "inference"
    by = f", found by {cells[0].found_by}" if cells[0].found_by else ""
    return f"{attack}: {what}, {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{by}"


def _table(board: Board, attack: str) -> str:
    cells, more = ordered([c for c in board.cells if c.attack == attack], board), several(board)
    heads = ["#", *(["problem"] if more else []), "defense", "threat", "score", "seeds", "measured", "status"]
    marked = {(h.problem, h.defense) for h in board.honest if h.marks}
    rows: list[list[str]] = []
    commands: dict[str, list[str]] = {}
    for i, c in enumerate(cells, 1):
        values = list(c.scores.values())
        name = f"{c.defense} {DAGGER}" if c.marks or (c.problem, c.defense) in marked else c.defense
        row = [str(i), *([escape(c.problem)] if more else []), escape(name), escape(c.threat)]
        row += [interval(mean(values)) if values else NOTHING, str(len(values)), escape(metrics(c)) or NOTHING]
        rows.append([*row, escape(_status(c))])
        if c.command:
            commands.setdefault(c.command, []).append(str(i))
    block = [f"{command}  # {', '.join(numbers)}" for command, numbers in commands.items()]
    return table(heads, rows) + (f"\n\nEach row anew:\n\n{code(block)}" if block else "")


def _status(c: Cell) -> str:
    """Status and reason; of scored cells the reading."""
    told = [c.status + (f": {c.reason}" if c.reason else "")]
    told += [] if c.counts else ["does not count in scores"]
    told += [f"read by {c.reading}"] if c.reading else []
    beside = [f"{name or 'unnamed'} {value:.2f}" for name, value in sorted(c.beside.items())]
    told += [f"other readings: {', '.join(beside)}"] if beside else []
    told += [f"marked: {mark}" for mark in c.marks]
    return "; ".join(told)
