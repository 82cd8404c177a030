"""Views in which members are to be told from held-out samples, made by hand: no harness, no training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.observation import Candidates, Observation, Simulator
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.models.cards.mlp import Options as MLPOptions
from fedarena.models.mlp import MLP
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

CLASSES = 10


@dataclass(frozen=True)
class Projections:
    """What K loss differences along normal directions come to in first order: z_kᵀ ∂L/∂W."""

    plain: PlainGradient
    z: Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {"differences": self.z @ flatten(self.plain(x, y))}


@cache
def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32)[:, None] / 16, torch.tensor(data.target)


def play(
    batch: int,
    rounds: int,
    directions: int | None = None,
    present: bool = True,
    seed: int = 0,
    activation: str = "relu",
) -> tuple[View, list[Tensor]]:
    """A view at initial parameters, and which candidates are members.

    Args:
        directions: K, numbers seen of each batch; None: its whole gradient.
        present: whether the members are really behind the observation; else what was seen is of other samples.
    """
    x, y = digits()
    architecture = MLP(MLPOptions(widths=(32,), activation=activation))
    module = architecture.module((1, 8, 8), CLASSES)
    task = Task(module, input_shape=(1, 8, 8), n_classes=CLASSES, sizes=(batch,), schedule=Schedule(batch_size=batch))
    rng = Rng(seed)
    plain = PlainGradient(task, architecture.init(module, rng.child("init").torch()), (0,))
    n = sum(p.numel() for p in module.parameters())
    observations, members = [], []
    for t in range(rounds):
        generator = rng.child(t).torch()
        drawn = torch.randperm(len(x), generator=generator)[: 3 * batch]
        inside, outside, others = drawn.split(batch)
        behind = inside if present else others
        simulate: Simulator = plain
        if directions is not None:
            simulate = Projections(plain, torch.randn(directions, n, generator=generator))
        order = torch.randperm(2 * batch, generator=generator)
        asked = torch.cat([inside, outside])[order]
        target = simulate(x[behind], torch.nn.functional.one_hot(y[behind], CLASSES).float())
        observations.append(
            Observation(
                t,
                clients=(0,),
                images=batch,
                target=target,
                simulate=simulate,
                candidates=Candidates(x[asked], y[asked]),
            )
        )
        members.append(order < batch)
    view = View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=(1, 8, 8),
        n_classes=CLASSES,
        observations=tuple(observations),
        output_layer="out",
    )
    return view, members


def score(attack: Inference, view: View, members: list[Tensor], seed: int = 0) -> dict[str, float]:
    """What the judge says of an attack on a view."""
    answers = attack(view, Rng(seed))
    assert not isinstance(answers, NotApplicable), answers.reason
    scores: list[Scores] = [a for a in answers if isinstance(a, Scores)]
    return membership_metrics(scores, members)
