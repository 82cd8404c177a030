"""A board with everything that a report can show, and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from fedarena.board.board import Board
from fedarena.core.rng import Rng
from fedarena.core.threat import FORMS
from fedarena.records import store
from fedarena.records.results import Gallery
from helpers.board import SEEDS, make_board, make_cell, make_clean_run, make_problem

COMMANDS = ("bench suite run play", "bench report play")
STATUSES = {0: "ok", 1: "ok", 2: "failed"}
FALLING = ((0, -0.3), (5, -40.0))
RANKED = {"auc": {0: 0.845, 1: 0.85, 2: 0.9}, "cosine": dict.fromkeys(SEEDS, 0.25)}
PROMISED = {"epsilon_replace_one": 2.0, "delta": 1e-5}
ROC = [[0.0, 0.0], [0.0, 0.2], [0.01, 0.4], [0.2, 0.8], [1.0, 1.0]]


def rich_board() -> Board:
    """Two problems, of which one measures R²; an attack of every status; an ε; ROC curves; a simulated part."""
    cells = [
        make_cell("fedavg", "dlg", 0.05, form="paper"),
        make_cell("fedavg", "dlg", 0.02),
        make_cell("fedavg", "dlg", 0.6, party="client"),
        make_cell("dp-sgd+krum", "dlg", 0.93, form="paper"),
        make_cell("dp-sgd+krum", "dlg", 0.71),
        make_cell("dp-sgd+krum", "dlg", status="failed", party="client"),
        make_cell("baffle", "dlg", status="n/a", form="paper"),
        make_cell("baffle", "dlg", status="n/a"),
        make_cell("fedavg", "joint-membership", 0.3, goal="membership", series={"roc": ROC}, metrics=RANKED),
        make_cell(
            "baffle",
            "joint-membership",
            [0.9, 0.8],
            seeds=(0, 1),
            status="mixed",
            statuses=STATUSES,
        ),
        make_cell("fedavg", "sign-flip", 0.15, axis="integrity"),
        make_cell("dp-sgd+krum", "sign-flip", 0.85, axis="integrity"),
        make_cell("dp-sgd+krum", "sign-flip", 0.65, axis="integrity", knows="omniscient"),
        make_cell("baffle", "sign-flip", status="missing", axis="integrity", reason=""),
        make_cell(
            "fedavg", "bank", 0.4, axis="integrity", form="adaptive", problem="years", curve=FALLING, counts=False
        ),
    ]
    honest = [
        make_clean_run("fedavg"),
        make_clean_run("dp-sgd+krum", level=0.8, guarantees=PROMISED, relative_seconds=3.5),
        make_clean_run("baffle", level=0.95, warnings=("secure aggregation is simulated",), bytes_up=400.0),
        make_clean_run("fedavg", problem="years", accuracy=dict.fromkeys(SEEDS, 0.5), curve=((0, -0.1), (5, 0.5))),
    ]
    years = make_problem(
        name="years",
        description="years, a line",
        measure="R2",
        chance=0.0,
        reference_accuracy={},
        subset="50 of 100 rows",
        utility=False,
    )
    return make_board(cells, honest, problems=(make_problem(), years))


def crowded_board(epsilons: Sequence[float] = (2.0,)) -> Board:
    """As many defenses as there will be, with long names, equal costs and few values of ε, and as many attacks."""
    names = ["fedavg", *(f"two-stage-hardened+rule-{i}" for i in range(24))]
    attacks = [f"poisoning+under-a-long-name-{i}" for i in range(15)]
    seen = {"series": {"roc": ROC}, "metrics": RANKED}
    curve = ((0, 0.1), (10, 0.5), (20, 0.6), (30, 0.7), (40, 0.8), (50, 0.9))
    cells = [make_cell(d, "membership-inference", 0.5, **seen) for d in names]
    cells += [make_cell(d, "dlg", [0.0, 0.0, 0.24], party="eavesdropper", form=f) for d in names[:4] for f in FORMS]
    cells += [make_cell(d, a, 0.5, axis="integrity", curve=curve) for d in names for a in attacks[:1]]
    cells += [make_cell("fedavg", a, 0.5, axis="integrity", curve=curve) for a in attacks[1:]]
    honest = [make_clean_run("fedavg")]
    honest += [
        make_clean_run(d, guarantees={"epsilon_add_remove": epsilons[i % len(epsilons)]})
        for i, d in enumerate(names[1:])
    ]
    return make_board(cells, honest)


def save_pictures(board: Board, folder: Path, attack: str = "dlg", side: int = 8, channels: int = 1) -> None:
    """Originals and noisier guesses of an attack's scored cells, least seed; clients attack other images."""
    for c in board.cells:
        if c.attack == attack and c.scores:
            generator = Rng(int(c.party == "client")).torch()
            originals = torch.rand(6, channels, side, side, generator=generator)
            noise = torch.randn(originals.shape, generator=generator) * min(c.scores.values())
            store.save_pictures(Gallery(c.keys[min(c.keys)], originals, originals + noise), folder)
