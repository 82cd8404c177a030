"""What a defense costs against what it achieves, and what it promises against what is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fedarena.board.board import Board
from fedarena.board.standing import Cut, Standing, standings
from fedarena.report.drawn import Drawn, as_png, file_name, label, look
from fedarena.summary import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS: dict[str, tuple[str, Callable[[Standing], float | None]]] = {
    "bytes": ("bytes per client and round / FedAvg's", lambda row: row.bytes),
    "seconds": ("training time / FedAvg's", lambda row: row.seconds),
}


def cost_and_score(board: Board) -> list[Drawn]:
    """Overall score against bytes and time; nothing where no defense has both."""
    from matplotlib.figure import Figure

    rows = standings(board)
    drawn = {
        name: [(row, cost, row.overall.value) for row in rows if (cost := of(row)) and row.overall.value is not None]
        for name, (_, of) in COSTS.items()
    }
    if not any(drawn.values()):
        return []
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    told = []
    for axes, (name, (title, _)) in zip(figure.subplots(1, 2, sharey=True), COSTS.items(), strict=True):
        _points(axes, [(row.defense, cost, value) for row, cost, value in drawn[name]], [r.defense for r in rows])
        axes.axvline(1.0, zorder=0, color="#888888", linewidth=0.8)
        axes.set_xlabel(title, fontsize=8)
        said = "; ".join(f"{row.defense} {cost:.2f} × for {value.value:.2f}" for row, cost, value in drawn[name])
        told.append(f"{title[0].upper()}{title[1:]}: {said or 'not measured'}.")
        if name == "bytes":
            axes.set_ylabel("overall score", fontsize=8)
    _legend_below(figure, figure.axes[0] if drawn["bytes"] else figure.axes[1])
    left_out = [row.defense for row in rows if row.overall.value is None]
    caption = "Overall score against cost; upper left is better, the grey line is FedAvg's cost. Bars: 95 % over seeds."
    if left_out:
        caption += f" Not drawn, because they have no overall score: {', '.join(left_out)}."
    return [Drawn("cost", "Overall score against cost. " + " ".join(told), caption, as_png(figure))]


def privacy_and_epsilon(board: Board) -> list[Drawn]:
    """Privacy against the ε that most protocols promise, a figure a problem; nothing where none promises any."""
    return [drawn for arena in board.arenas if (drawn := _epsilon(board, arena.name)) is not None]


def _epsilon(board: Board, problem: str) -> Drawn | None:
    from matplotlib.figure import Figure

    rows = {row.defense: row for row in standings(board, Cut(problems=(problem,)))}
    promised = {h.defense: h.guarantees for h in board.honest if h.problem == problem}
    kinds = sorted({name for given in promised.values() for name in given if name.startswith("epsilon")})
    found = {
        kind: [
            (d, promised[d][kind], value)
            for d, row in rows.items()
            if d in promised and promised[d].get(kind, 0.0) > 0 and (value := row.privacy.value) is not None
        ]
        for kind in kinds
    }
    kind = max(kinds, key=lambda name: len(found[name]), default="")
    if not kind or not found[kind]:
        return None
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    axes = figure.subplots()
    _points(axes, found[kind], list(rows))
    axes.set_xlabel(_called(kind), fontsize=8)
    axes.set_ylabel("privacy, worst case", fontsize=8)
    told = "; ".join(f"{d} ε {eps:.3g} and privacy {value.value:.2f}" for d, eps, value in found[kind])
    plain = rows["fedavg"].privacy.value if "fedavg" in rows else None
    if plain is not None:
        axes.axhline(plain.value, zorder=0, color="#888888", linewidth=0.8)
        told += f"; fedavg promises nothing and has {plain.value:.2f}"
    _legend_below(figure, axes)
    others = (
        f" Other kinds stand in the table of honest runs: {', '.join(map(_called, kinds))}." if len(kinds) > 1 else ""
    )
    caption = (
        f"Worst privacy score on {problem} against the {_called(kind)} that the protocol promises; a smaller ε "
        "promises more. Bars: 95 % over seeds; grey: FedAvg, which promises nothing. An ε bounds attacks on what it "
        f"was proven for alone.{others}"
    )
    alt = f"Privacy against {_called(kind)} on {problem}: {told}."
    return Drawn(file_name("epsilon", problem), alt, caption, as_png(figure))


def _called(kind: str) -> str:
    """`epsilon_replace_one` → "ε (replace one)"."""
    rest = kind.removeprefix("epsilon").strip("_").replace("_", " ")
    return f"ε ({rest})" if rest else "ε"


def _points(axes: Axes, points: Sequence[tuple[str, float, Mean]], order: Sequence[str]) -> None:
    """A marker each, with its interval cut to [0, 1]."""
    for defense, x, value in points:
        half = value.half or 0.0
        low, high = max(0.0, value.value - half), min(1.0, value.value + half)
        at = look(order.index(defense)) | {"markersize": 6, "linestyle": "none"}
        axes.errorbar(
            [x], [value.value], [[value.value - low], [high - value.value]], capsize=3, label=label(defense), **at
        )
    if points:
        xs = [x for _, x, _ in points]
        axes.set_xscale("log", subs=[2, 5])
        axes.set_xlim(min(xs) / 1.5, max(xs) * 1.5)
        axes.tick_params(which="minor", labelsize=7)
        for ticks in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            ticks("{x:g}")
    axes.set_ylim(0.0, 1.02)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=7)


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(5, len(names)), fontsize=8)
