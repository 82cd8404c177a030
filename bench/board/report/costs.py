"""What a defense costs against what it achieves, and what it promises against what is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fedarena.board.board import Board
from fedarena.board.report.drawn import Drawn, as_png, file_name
from fedarena.board.report.rows import Panel, in_rows
from fedarena.board.standing import Cut, Standing, standings
from fedarena.core.text.mean import Mean

COSTS: dict[str, tuple[str, Callable[[Standing], float | None]]] = {
    "bytes": ("bytes per client and round / FedAvg's", lambda row: row.bytes),
    "seconds": ("training time / FedAvg's", lambda row: row.seconds),
}


def cost_and_score(board: Board) -> list[Drawn]:
    """Overall score beside bytes and time, a row a defense; nothing where no defense has both."""
    scored = {row.defense: (row, value) for row in standings(board) if (value := row.overall.value) is not None}
    costs = {
        name: {defense: cost for defense, (row, _) in scored.items() if (cost := of(row))}
        for name, (_, of) in COSTS.items()
    }
    best = sorted(scored, key=lambda defense: -scored[defense][1].value)
    names = [defense for defense in best if any(defense in found for found in costs.values())]
    if not names:
        return []
    panels = [Panel("overall score", {d: scored[d][1] for d in names})]
    told = []
    for name, (title, _) in COSTS.items():
        panels.append(Panel(title, _single(costs[name]), log=True, guide=1.0))
        said = "; ".join(f"{d} {costs[name][d]:.2f} × for {scored[d][1].value:.2f}" for d in names if d in costs[name])
        told.append(f"{title[0].upper()}{title[1:]}: {said or 'not measured'}.")
    caption = (
        "Overall score beside cost, the best score on top; further left is cheaper, and the grey lines are FedAvg's "
        "cost. What has a row above it whose costs lie no further right is no bargain. Bars: 95 % over seeds."
    )
    left_out = [row.defense for row in standings(board) if row.defense not in scored]
    if left_out:
        caption += f" Not drawn, because they have no overall score: {', '.join(left_out)}."
    alt = "Overall score against cost. " + " ".join(told)
    return [Drawn("cost", alt, caption, as_png(in_rows(names, panels)))]


def privacy_and_epsilon(board: Board) -> list[Drawn]:
    """Privacy against the ε that most protocols promise, a figure a problem; nothing where none promises any."""
    return [drawn for arena in board.arenas if (drawn := _epsilon(board, arena.name)) is not None]


def _epsilon(board: Board, problem: str) -> Drawn | None:
    rows = {row.defense: row for row in standings(board, Cut(problems=(problem,)))}
    privacy = {d: value for d, row in rows.items() if (value := row.privacy.value) is not None}
    promised = {h.defense: h.guarantees for h in board.honest if h.problem == problem}
    kinds = sorted({name for given in promised.values() for name in given if name.startswith("epsilon")})
    found = {
        kind: {d: promised[d][kind] for d in privacy if d in promised and promised[d].get(kind, 0.0) > 0}
        for kind in kinds
    }
    kind = max(kinds, key=lambda name: len(found[name]), default="")
    if not kind or not found[kind]:
        return None
    # As they are told: accountants stop a little below what is asked for.
    given = dict(sorted(found[kind].items(), key=lambda item: (float(f"{item[1]:.3g}"), -privacy[item[0]].value)))
    plain = privacy.get("fedavg")
    told = "; ".join(f"{d} ε {eps:.3g} and privacy {privacy[d].value:.2f}" for d, eps in given.items())
    if plain is not None:
        told += f"; fedavg promises nothing and has {plain.value:.2f}"
    others = (
        f" Other kinds stand in the table of honest runs: {', '.join(map(_called, kinds))}." if len(kinds) > 1 else ""
    )
    caption = (
        f"Worst privacy score on {problem} beside the {_called(kind)} that the protocol promises; a smaller ε "
        "promises more, and rows are in its order, then by score. Bars: 95 % over seeds; grey line: FedAvg, which "
        f"promises nothing. An ε bounds attacks on what it was proven for alone.{others}"
    )
    alt = f"Privacy against {_called(kind)} on {problem}: {told}."
    figure = in_rows(list(given), _promise_and_privacy(kind, given, privacy, plain))
    return Drawn(file_name("epsilon", problem), alt, caption, as_png(figure))


def _promise_and_privacy(
    kind: str, given: Mapping[str, float], privacy: Mapping[str, Mean], plain: Mean | None
) -> list[Panel]:
    """Two panels; one where all promise the same, which its title then says."""
    guide = None if plain is None else plain.value
    scores = {d: privacy[d] for d in given}
    same = {f"{eps:.3g}" for eps in given.values()}
    if len(same) == 1:
        return [Panel(f"privacy, worst case, where {_called(kind)} is {same.pop()}", scores, guide=guide)]
    return [
        Panel(_called(kind), _single(given), log=True),
        Panel("privacy, worst case", scores, guide=guide),
    ]


def _single(values: Mapping[str, float]) -> dict[str, Mean]:
    """Numbers without an interval."""
    return {name: Mean(value, None, 1) for name, value in values.items()}


def _called(kind: str) -> str:
    """`epsilon_replace_one` → "ε (replace one)"."""
    rest = kind.removeprefix("epsilon").strip("_").replace("_", " ")
    return f"ε ({rest})" if rest else "ε"
