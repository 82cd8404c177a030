"""The table of clean runs: accuracy, utility, costs, guarantees and warnings of each defense."""

from __future__ import annotations

from fedarena.board.board import Board, CleanRun
from fedarena.board.score_text import NOTHING, interval, times
from fedarena.core.text.markdown import code, escape, table
from fedarena.core.text.numbers import MEASURES, level, mean, percent

BY_CLIENT = "by client: mean, lowest decile"
MEANS = (
    "By client: the accuracy of each honest client on held-out data with its own shares of classes, Σ_k n_ck a_k / "
    "Σ_k n_ck with n_ck its training samples of class k and a_k the model's accuracy on the class."
)


def clean_run_table(board: Board) -> str:
    """The table with its commands; a sentence where there are no clean runs."""
    if not board.clean_runs:
        return "No run without an attack."
    measures = {p.name: p.measure for p in board.problems}
    quality = " or ".join(MEASURES[m] for m in MEASURES if m in measures.values())
    clients = any(run.client_mean for run in board.clean_runs)
    heads = ["problem", "defense", quality, *([BY_CLIENT] if clients else []), "of FedAvg's"]
    heads += ["bytes up", "bytes down", "time", "guarantees", "warnings"]
    rows = [_row(run, measures.get(run.problem, "accuracy"), clients) for run in board.clean_runs]
    commands = list(dict.fromkeys(run.command for run in board.clean_runs if run.command))
    below = "Bytes are per client and round; time is that of training, over FedAvg's."
    if clients:
        below += f" {MEANS}"
    return "\n\n".join([table(heads, rows), below, *([code(commands)] if commands else [])])


def _row(run: CleanRun, measure: str, clients: bool) -> list[str]:
    accuracy, utility = list(run.accuracy.values()), list(run.utility.values())
    status = run.status + (f": {run.reason}" if run.reason else "")
    return [
        escape(run.problem),
        escape(run.defense),
        level(mean(accuracy), measure) if accuracy else escape(status),
        *([_by_client(run) or NOTHING] if clients else []),
        interval(mean(utility)) if utility else NOTHING,
        *(f"{n:,.0f}" if run.keys else NOTHING for n in (run.bytes_up, run.bytes_down)),
        times(run.relative_seconds),
        escape(_guarantees(run)) or NOTHING,
        escape("; ".join(run.warnings)) or NOTHING,
    ]


def _by_client(run: CleanRun) -> str:
    parts = (run.client_mean, run.client_lowest_decile)
    return ", ".join(percent(mean(list(values.values()))) for values in parts if values)


def _guarantees(run: CleanRun) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in run.guarantees.items())


def _number(value: float) -> str:
    """Counts in full, anything else to three digits."""
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"
