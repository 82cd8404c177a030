"""BAFFLE, Figure 5 (Appendix D): the loss differences of real data beside those of noise.

The figure prints no number. Its text: "it is difficult to distinguish the BAFFLE's outputs between private data and
random noise". 500 perturbations of σ = 10⁻⁴ are drawn for a batch of test images and, anew, for a batch of noise with
random labels: Gaussian, or Laplacian of scale 1, both in the units of the network's inputs. Neither the size of the
batch (here 32) nor the state of the network is given: it is at its random start, or after one round of table 1's
backpropagation.

`ks` is the largest distance between the two empirical distributions of ΔL, the two-sample Kolmogorov-Smirnov statistic.
It counts as difficult to distinguish up to 0.0859, its critical value at 5 % for 500 and 500. `auc` is the chance that
a difference of real data is the larger one, within .05 of .5 where the signs say nothing. `auc_of_lengths` takes |ΔL|.
`ks_scaled` divides each sample by its own standard deviation first: ΔL is about σ‖∂L/∂W‖ times a normal number, so that
batches differ by the length of their gradients. `control_ks` compares two batches of real data."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import ks_2samp, mannwhitneyu
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.directions import directions
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem, build
from fedarena.problem.task import Batch
from fedarena.reproduce.baffle.common import INPUTS, Experiment, group
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Cause, Published
from fedarena.reproduce.table import Row, Table, measured_by_name

COUNT, SIGMA, BATCH, SIDE = 500, 1e-4, 32, 32
CRITICAL = math.sqrt(-math.log(0.05 / 2) / 2) * math.sqrt(2 / COUNT)
"""The critical value of the two-sample statistic at level α = 5 %: √(−ln(α/2)/2)·√((n + m)/nm) with n = m = COUNT."""
SETTING = (
    f"{COUNT} loss differences of a batch of {BATCH} test images against {COUNT} of a batch of noise; ks: "
    "Kolmogorov-Smirnov distance; auc: the chance that the real one is larger; auc_of_lengths: the same of |ΔL|; "
    "ks_scaled: ks of samples divided by their standard deviations sd_real and sd_noise; "
    "control_ks: two batches of real data"
)
MEASURED = ("ks", "ks_scaled", "auc", "auc_of_lengths", "sd_real", "sd_noise", "control_ks", "accuracy", "cpu_seconds")
START, TRAINED = "random start", "after one round"
GAUSSIAN, LAPLACIAN = "Gaussian", "Laplacian"
TOLD_BY_SIGN = 0.05
"""How far from .5 the AUC of signed differences may be: about 2.7 standard deviations of chance, √(1/6/500) each."""


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        data, model: the data set and the network. state: START or TRAINED. noise: GAUSSIAN or LAPLACIAN.
    """

    data: str
    model: str
    state: str
    noise: str

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.data}, {self.model}, {self.state}, {self.noise}"


SHOWN = ("mnist", "lenet-baffle", START)
"""The cases whose cause was measured, with three seeds."""

CASES = [
    Case(data=data, model=model, state=state, noise=noise)
    for data, model in (("mnist", "lenet-baffle"), ("cifar10", "lenet-baffle"), ("mnist", "wrn-10-2"))
    for state in (START, TRAINED)
    for noise in (GAUSSIAN, LAPLACIAN)
]


def measure(case: Case, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a case for one seed."""
    began = time.process_time()
    problem, params = _model(case, machine, seed, progress)
    rng = Rng(seed).child("noise inputs")
    real, other, noise = (*_real(problem, rng), _noise(problem, case, rng))
    found = [_differences(problem, params, batch, rng.child("directions", i)) for i, batch in enumerate((real, noise))]
    control = _differences(problem, params, other, rng.child("directions", 2))
    accuracy, _ = problem.evaluate(params)
    row: Row = {"data": case.data, "model": case.model, "state": case.state, "noise": case.noise}
    return [
        row
        | compared(*found)
        | {"control_ks": compared(found[0], control)["ks"], "accuracy": accuracy}
        | {"cpu_seconds": time.process_time() - began}
    ]


def compared(real: Tensor, noise: Tensor) -> Row:
    """Statistics of two samples of loss differences, each [K]."""
    a, b = (t.double().cpu().numpy() for t in (real, noise))
    return {
        "ks": float(ks_2samp(a, b, method="asymp").statistic),
        "ks_scaled": float(ks_2samp(a / a.std(ddof=1), b / b.std(ddof=1), method="asymp").statistic),
        "auc": _auc(a, b),
        "auc_of_lengths": _auc(abs(a), abs(b)),
        "sd_real": float(a.std(ddof=1)),
        "sd_noise": float(b.std(ddof=1)),
    }


def _auc(a: np.ndarray[tuple[int], np.dtype[np.float64]], b: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The chance that a value of a is larger than one of b; ties count half."""
    return float(mannwhitneyu(a, b).statistic) / (len(a) * len(b))


def _model(case: Case, machine: Machine, seed: int, progress: Progress) -> tuple[Problem, Tensors]:
    """The problem, and parameters in the state of the case."""
    experiment = Experiment(data=case.data, model=case.model, title=case.state, paper=None, rounds=1)
    spec = group(experiment, machine, seed, 0)
    problem = build(spec.problem, seed, machine.data_dir, machine.device)
    if case.state == START:
        return problem, problem.init
    run = federation.run(
        compose.make_defense(spec.defense, problem.task),
        problem,
        Rng(seed).child("federation"),
        progress=lambda share: progress(share, "training"),
    )
    return problem, run.params


def _real(problem: Problem, rng: Rng) -> tuple[Batch, Batch]:
    """Two batches of test images that share none."""
    order = torch.randperm(len(problem.y_test), generator=rng.child("real").torch())[: 2 * BATCH]
    order = order.to(problem.y_test.device)
    x, y = problem.x_test[order].float() / problem.scale, problem.y_test[order]
    return Batch(x[None, :BATCH], y[None, :BATCH]), Batch(x[None, BATCH:], y[None, BATCH:])


def _noise(problem: Problem, case: Case, rng: Rng) -> Batch:
    """Images of independent noise, standard normal or Laplace of scale 1 behind the network's normalisation."""
    generator = rng.child("noise").torch()
    shape = (1, BATCH, problem.task.input_shape[0], SIDE, SIDE)
    if case.noise == GAUSSIAN:
        z = torch.randn(shape, generator=generator)
    else:
        u = torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5
        z = (-u.sign() * torch.log1p(-2 * u.abs())).float()
    inputs = INPUTS.get(case.data, {})
    z = float(inputs.get("mean", 0)) + float(inputs.get("std", 1)) * z
    y = torch.randint(0, problem.task.n_classes, (1, BATCH), generator=generator)
    return Batch(z.to(problem.device), y.to(problem.device))


def _differences(problem: Problem, params: Tensors, batch: Batch, rng: Rng) -> Tensor:
    """ΔL of COUNT perturbations [COUNT]."""
    n = sum(p.numel() for p in params.values())
    how = forwards.Differencing(SIGMA, "forward", torch.float32)
    z = directions(rng.integer(31), n)
    return forwards.differences(problem.task, params, [batch], z, COUNT, how)[0]


SCALE = Cause(
    "noise gives longer gradients, and nothing else differs: divided by their standard deviations, the two samples are "
    "not told apart (column `ks_scaled`), and the signs say nothing (column `auc`)"
)
"""What explains the statistic where its columns were measured to show it."""


def published(case: Case) -> tuple[Published, ...]:
    """What the figure's text says of a case."""
    return (
        Published(
            piece=case.name,
            paper="difficult to distinguish",
            column="ks",
            share=False,
            better="",
            within=(0.0, CRITICAL),
            remark="held: up to the critical value at 5 %",
            causes=(SCALE,) if (case.data, case.model, case.state) == SHOWN else (),
        ),
        Published(
            piece=case.name,
            paper="difficult to distinguish",
            column="auc",
            better="",
            within=(0.5 - TOLD_BY_SIGN, 0.5 + TOLD_BY_SIGN),
            remark="held: within .05 of .5",
        ),
    )


BY_NAME = {case.name: case for case in CASES}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(one for case in CASES for one in published(case)),
)
