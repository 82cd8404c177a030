"""PBPFL in float32: how far the recovered gradient is from the true one, by the masks' spread and by γ.

The paper (Section 5.2.1) says that masks "may cause precision errors" of "little impact", and gives no number. Here a
client's gradient is recovered in float32 (Eq. 19) and compared with the plain gradient in float64 at the same
parameters. Three series turn one knob each:

    spread of r, γ ≈ 0      r over 0 to 12 decades; the terms with γ vanish, so that this is what r costs by itself
    spread of r, γ ~ U(0, 1)      α, the sum of the masked features, grows with r
    γ, r over 2 decades           γ ~ U(0, scale), scale 1 to 10⁶

and three more vary the distributions of r, of r_a and of γ, each with the others at their defaults.

Beside the error of the whole gradient stand the largest of any layer, what a float32 gradient without masks has
(`plain`), and the digits that the defense says it lost (`digits_lost`), which predict an error of 2⁻²⁴·10^digits
(`predicted`) and end at 7.2, where nothing is left to lose. A run is marked from `digits` lost on, by default 5.

Rows are medians over draws of the masks, which also vary all roundings. In some draws a ReLU whose input is 0 but for
rounding switches, and the error jumps. Cancellation does not predict this, and γ plays no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

from torch.func import grad

from fedarena.contracts.defense import State
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row
from fedarena.defenses.pbpfl.card import Options
from fedarena.defenses.pbpfl.protocol import PBPFL
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl.common import FEDAVG, spec, train
from fedarena.reproduce.pbpfl.picture import ErrorCurve, Panel, draw_panels
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

ROUNDING = 2.0**-24
"""Largest relative error of one float32 rounding."""
GUARD = Options().digits
DRAWS = 5

SETTING = (
    "relative L2 error of the recovered gradient in float32 against float64; digits, 8×8 images, batch 64; medians "
    f"over {DRAWS} draws of the masks; runs are marked from {GUARD:g} digits lost on, a predicted error of "
    f"{ROUNDING * 10**GUARD:.1g}"
)
MEASURED = ("error", "worst_layer", "plain", "digits_lost", "predicted", "marked")


@dataclass(frozen=True)
class Network:
    """A network whose gradient is recovered.

    Attributes:
        title: the name by which `--only` selects it. model, options: from the registry. rounds: rounds of FedAvg
            before, at rate `lr`.
    """

    title: str
    model: str
    options: tuple[tuple[str, str], ...]
    rounds: int = 0
    lr: float = 0.1


@dataclass(frozen=True)
class Series:
    """Values of one option, with the others fixed or at their defaults."""

    title: str
    knob: str
    values: tuple[float | str, ...]
    fixed: tuple[tuple[str, str], ...] = ()


_MLP = (("widths", "50,50"), ("bias", "false"))
NETWORKS = (
    Network("mlp 64-50-50-10, at the start", "mlp", _MLP),
    Network("mlp 64-50-50-10, after 1000 rounds", "mlp", _MLP, 1000),
    Network("ResNet-20, at the start", "resnet", ()),
    Network("ResNet-20, after 200 rounds", "resnet", (), 200, 0.02),
)
BY_TITLE = {network.title: network for network in NETWORKS}

SERIES = (
    Series("spread of r, γ ≈ 0", "decades", tuple(float(d) for d in range(13)), (("gamma_scale", "1e-12"),)),
    Series("spread of r, γ ~ U(0, 1)", "decades", tuple(float(d) for d in range(13)), ()),
    Series("γ, r over 2 decades", "gamma_scale", tuple(10.0**e for e in range(7)), ()),
)

DISTRIBUTIONS = (
    Series("law of r", "r", ("log-uniform", "uniform", "constant")),
    Series("law of r_a", "r_a", ("uniform", "normal")),
    Series("law of γ", "gamma", ("uniform", "normal", "cancelling")),
)


def measure(
    network: Network, machine: Machine, seed: int, progress: Progress, series: Sequence[Series] = SERIES + DISTRIBUTIONS
) -> list[Row]:
    """One row for every value of every series."""
    schedule = Schedule(rounds=max(1, network.rounds), batch_size=64, loss="mse", lr=network.lr)
    federation = spec("digits", network.model, dict(network.options), "whole", 1, schedule)
    problem = build(federation, seed, machine.data_dir, machine.device)
    params = problem.init
    if network.rounds:
        params = train(FEDAVG, problem, seed, lambda share: progress(0.5 * share, "training")).params
    batch = problem.batch(0, Rng(seed).child("precision"))
    precise = Batch(batch.x.double(), batch.y)
    exact = plain_gradient(problem.task, {n: p.double() for n, p in params.items()}, precise)
    own = relative(plain_gradient(problem.task, params, batch), exact)
    steps = [(s, value) for s in series for value in s.values]
    rows = []
    for i, (s, value) in enumerate(steps):
        progress(0.5 + 0.5 * i / len(steps), s.title)
        options = dict(s.fixed) | {s.knob: value if isinstance(value, str) else f"{value:g}"}
        draws = list(recoveries(problem.task, params, batch, exact, options, seed))
        errors, worst, lost = (median(column) for column in zip(*draws, strict=True))
        rows.append(
            {
                "network": network.title,
                "series": s.title,
                "value": value,
                "error": errors,
                "worst_layer": worst,
                "plain": own,
                "digits_lost": lost,
                "predicted": ROUNDING * 10.0**lost,
                "marked": sum(not draw[2] <= GUARD for draw in draws) / len(draws),
            }
        )
    return rows


def plain_gradient(task: Task, params: Tensors, batch: Batch) -> Tensors:
    """∂L/∂W without masks, in the number format of the parameters."""
    gradient: Tensors = grad(task.loss)(params, *batch.images())
    return gradient


def relative(recovered: Tensors, exact: Tensors) -> float:
    """‖recovered − exact‖/‖exact‖ over all tensors as one vector."""
    truth = flatten(exact)
    return float((flatten(recovered).double() - truth).norm() / truth.norm())


def recoveries(
    task: Task, params: Tensors, batch: Batch, exact: Tensors, options: Mapping[str, str], seed: int
) -> Iterator[tuple[float, float, float]]:
    """(error of the whole gradient, largest error of a layer, digits that the defense says it lost), draw by draw."""
    defense = make_defense(parse_defense("pbpfl", options), task)
    assert isinstance(defense, PBPFL)
    for draw in range(DRAWS):
        sent = defense.broadcast(State(params), Rng(seed).child("masks", draw))
        ups, _ = defense.clients(sent.down, [batch], [{}], [{}])
        gradients, lost = defense.wire.recover(sent, ups)
        recovered = row(gradients, 0)
        worst = max(relative({n: recovered[n]}, {n: exact[n]}) for n in exact)
        yield relative(recovered, exact), worst, float(lost)


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw a panel for each network: measured and predicted errors over both knobs, and where runs are marked."""
    seed = rows[0]["seed"]
    panels = []
    for network in dict.fromkeys(r["network"] for r in rows):
        lines = {}
        for s in SERIES:
            own = [r for r in rows if (r["network"], r["series"], r["seed"]) == (network, s.title, seed)]
            # Both knobs on one axis: the power of ten by which they spread or scale.
            powers = [r["value"] if s.knob == "decades" else log10(r["value"]) for r in own]
            lines[s.title] = ErrorCurve(powers, [r["error"] for r in own], [r["predicted"] for r in own])
        panels.append(Panel(network, lines))
    draw_panels(panels, ROUNDING * 10**GUARD, path)


TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_TITLE),
    rows=measured_by_name(BY_TITLE, measure),
    measured=MEASURED,
    draw=draw,
)
