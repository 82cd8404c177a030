"""Two boards → what changed, and which of the changes a person must look at."""

from __future__ import annotations

from dataclasses import replace

from fedarena.board.board import Board, BoardCell, BySeed, CleanRun
from fedarena.board.gate.board_changes import board_changes, problem_changes
from fedarena.board.gate.cell_changes import another_experiment, cell_changes
from fedarena.board.gate.change import Change
from fedarena.board.gate.clean_run_changes import clean_run_changes
from fedarena.board.gate.comparison import (
    REFERENCE,
    Comparison,
    Item,
    Rules,
    cell_name,
    clean_run_name,
    mean_name,
)
from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.inert import NO_ATTACK, NO_DEFENSE, harmless_now, undefended_now
from fedarena.board.gate.judge import Verdict, judge
from fedarena.board.gate.means import means
from fedarena.contracts.baseline import BASELINE

Place = tuple[str, ...]
Cells = list[tuple[BoardCell, BoardCell | None]]
Runs = list[tuple[CleanRun, CleanRun | None]]
"""Each cell or clean run of the base board with its counterpart on the new board, or None where there is none."""


def compare(base: Board, new: Board, rules: Rules | None = None) -> Comparison:
    """Match cells by place and clean runs by problem and defense, test their scores, compare everything else."""
    rules = rules or Rules()
    cells, runs = _pairs(base, new)
    cell_contrasts = [(c, contrast) for c, n in cells if (contrast := _cell_contrast(c, n, rules)) is not None]
    run_contrasts = [contrast for run, n in runs if (contrast := _clean_run_contrast(run, n, rules)) is not None]
    verdicts = _verdicts([*(contrast for _, contrast in cell_contrasts), *run_contrasts], rules)
    mean_contrasts = means([(contrast, c) for c, contrast in cell_contrasts], rules.effects["mean"])
    mean_verdicts = judge(mean_contrasts, rules.false_alarm / 2, rules.losses_only, means=True)
    undefended, harmless = undefended_now(base, new), harmless_now(base, new)
    items = [
        *_items_of_boards(base, new),
        *(_clean_run_item(run, n, verdicts.get(run.place), run.place in undefended) for run, n in runs),
        *(_cell_item(c, n, verdicts.get(c.place), c.place in harmless) for c, n in cells),
        *(Item("mean", name=mean_name(v.contrast), verdict=v) for v in mean_verdicts),
    ]
    known = {c.place for c, _ in cells} | {run.place for run, _ in runs}
    return Comparison(
        base=_board_name(base),
        new=_board_name(new),
        rules=rules,
        items=tuple(items),
        added=tuple(_added(new, known)),
    )


def _pairs(base: Board, new: Board) -> tuple[Cells, Runs]:
    """The cells and clean runs of the base board that are not missing, with those of the new board."""
    new_cells = {c.place: c for c in new.cells}
    new_runs = {run.place: run for run in new.clean_runs}
    cells: Cells = [(c, new_cells.get(c.place)) for c in base.cells if c.status != "missing"]
    runs: Runs = [(run, new_runs.get(run.place)) for run in base.clean_runs if run.status != "missing"]
    return cells, runs


def _added(new: Board, known: set[Place]) -> list[str]:
    """Names of what the base board does not have."""
    runs = [run for run in new.clean_runs if run.status != "missing" and run.place not in known]
    cells = [c for c in new.cells if c.status != "missing" and c.place not in known]
    return [*map(clean_run_name, runs), *map(cell_name, cells)]


def _board_name(board: Board) -> str:
    commit = board.provenance.get("commit")
    return f"{board.suite} ({commit})" if commit else board.suite


def _items_of_boards(base: Board, new: Board) -> list[Item]:
    """What concerns the boards as a whole, and what changed of the problems."""
    changes = {"the boards as a whole": board_changes(base, new)}
    new_problems = {p.name: p for p in new.problems}
    changes |= {f"problem {p.name}": problem_changes(p, new_problems.get(p.name)) for p in base.problems}
    return [Item("board", name=name, changes=tuple(some)) for name, some in changes.items() if some]


def _verdicts(contrasts: list[Contrast], rules: Rules) -> dict[object, Verdict]:
    """The tests of single scores by place; under exact rules all noise is a change."""
    verdicts = judge(contrasts, rules.false_alarm / 2, rules.losses_only)
    if rules.exact:
        verdicts = [replace(v, outcome="changed") if v.outcome == "noise" else v for v in verdicts]
    return {v.contrast.place: v for v in verdicts}


def _cell_contrast(base: BoardCell, new: BoardCell | None, rules: Rules) -> Contrast | None:
    """A cell's scores on both boards; None where they cannot be compared."""
    if new is None or another_experiment(base, new):
        return None
    return _contrast(base.place, base.goal or base.axis, base.axis, (base.scores, new.scores), rules)


def _clean_run_contrast(base: CleanRun, new: CleanRun | None, rules: Rules) -> Contrast | None:
    """A clean run's utilities on both boards, or accuracies for FedAvg, whose utility is always 1."""
    if new is None:
        return None
    if base.defense == BASELINE:
        return _contrast(base.place, REFERENCE, "utility", (base.accuracy, new.accuracy), rules)
    return _contrast(base.place, "utility", "utility", (base.utility, new.utility), rules)


def _contrast(place: Place, kind: str, axis: str, scores: tuple[BySeed, BySeed], rules: Rules) -> Contrast | None:
    """The scores of the base and the new board over common seeds; None without common seeds."""
    base, new = scores
    seeds = tuple(sorted(set(base) & set(new)))
    if not seeds:
        return None
    return Contrast(
        place=place,
        kind=kind,
        axis=axis,
        seeds=seeds,
        base=tuple(base[s] for s in seeds),
        new=tuple(new[s] for s in seeds),
        effect=rules.effects[axis],
    )


def _cell_item(base: BoardCell, new: BoardCell | None, verdict: Verdict | None, harmless: bool) -> Item:
    changes = [*cell_changes(base, new), *([Change(NO_ATTACK)] if harmless else [])]
    return Item(
        group="cell",
        name=cell_name(base),
        changes=tuple(changes),
        verdict=verdict,
        reason=f"{base.status}: {base.reason}" if verdict is None else "",
        command=base.command,
    )


def _clean_run_item(base: CleanRun, new: CleanRun | None, verdict: Verdict | None, undefended: bool) -> Item:
    changes = [*clean_run_changes(base, new), *([Change(NO_DEFENSE)] if undefended else [])]
    return Item(
        group="honest",
        name=clean_run_name(base),
        changes=tuple(changes),
        verdict=verdict,
        reason=f"{base.status}: {base.reason}" if verdict is None else "",
        command=base.command,
    )
