"""The ε that protocols promise beside the privacy that attacks leave."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.board.board import Board
from fedarena.board.ranking import rank_defenses
from fedarena.board.report.report_figure import ReportFigure, as_png, file_name
from fedarena.board.report.row_panels import Panel, in_rows, without_interval
from fedarena.board.threat_filter import ThreatFilter
from fedarena.contracts.baseline import BASELINE
from fedarena.core.text.mean import Mean


def privacy_and_epsilon(board: Board) -> list[ReportFigure]:
    """A figure for each problem on which a protocol with a privacy score promises an ε."""
    return [figure for problem in board.problems if (figure := _figure(board, problem.name)) is not None]


def _figure(board: Board, problem: str) -> ReportFigure | None:
    rows = rank_defenses(board, ThreatFilter(problems=(problem,)))
    privacy = {row.defense: row.privacy.value for row in rows if row.privacy.value is not None}
    by_kind = _promised(board, problem, privacy)
    kind = max(by_kind, key=lambda name: len(by_kind[name]), default="")
    if not kind or not by_kind[kind]:
        return None
    # Sorted as they are written: accountants stop a little below the ε that is requested.
    order = sorted(by_kind[kind].items(), key=lambda item: (float(f"{item[1]:.3g}"), -privacy[item[0]].value))
    epsilons, reference = dict(order), privacy.get(BASELINE)
    text = "; ".join(f"{d} ε {epsilon:.3g} and privacy {privacy[d].value:.2f}" for d, epsilon in epsilons.items())
    if reference is not None:
        text += f"; {BASELINE} promises nothing and has {reference.value:.2f}"
    return ReportFigure(
        name=file_name("epsilon", problem),
        alt=f"Privacy against {_title(kind)} on {problem}: {text}.",
        caption=_caption(problem, kind, list(by_kind)),
        png=as_png(in_rows(list(epsilons), _panels(kind, epsilons, privacy, reference))),
    )


def _promised(board: Board, problem: str, privacy: Mapping[str, Mean]) -> dict[str, dict[str, float]]:
    """Kind of ε → defense → ε, of defenses with a privacy score; kinds that no such defense promises are empty."""
    guarantees = {run.defense: run.guarantees for run in board.clean_runs if run.problem == problem}
    kinds = sorted({name for values in guarantees.values() for name in values if name.startswith("epsilon")})
    return {
        kind: {d: guarantees[d][kind] for d in privacy if d in guarantees and guarantees[d].get(kind, 0.0) > 0}
        for kind in kinds
    }


def _caption(problem: str, kind: str, kinds: list[str]) -> str:
    others = f" Other kinds are in the table of clean runs: {', '.join(map(_title, kinds))}." if len(kinds) > 1 else ""
    return (
        f"Worst privacy score on {problem} beside the {_title(kind)} that the protocol promises; a smaller ε "
        "promises more, and rows are in its order, then by score. Bars: 95 % over seeds; grey line: FedAvg, which "
        f"promises nothing. An ε bounds attacks on what it was proven for alone.{others}"
    )


def _panels(
    kind: str, epsilons: Mapping[str, float], privacy: Mapping[str, Mean], reference: Mean | None
) -> list[Panel]:
    """Two panels; one where all promise the same ε, which its title then names."""
    guide = None if reference is None else reference.value
    scores = {d: privacy[d] for d in epsilons}
    different = {f"{epsilon:.3g}" for epsilon in epsilons.values()}
    if len(different) == 1:
        return [Panel(f"privacy, worst case, where {_title(kind)} is {different.pop()}", scores, guide=guide)]
    return [
        Panel(_title(kind), without_interval(epsilons), log=True),
        Panel("privacy, worst case", scores, guide=guide),
    ]


def _title(kind: str) -> str:
    """`epsilon_replace_one` → "ε (replace one)"."""
    rest = kind.removeprefix("epsilon").strip("_").replace("_", " ")
    return f"ε ({rest})" if rest else "ε"
