"""Inverting Gradients on images at initial parameters, by this package's attack of that name.

The paper (Geiping et al. 2020, Sections 5 and 6) shows single images of CIFAR-10 and larger from one gradient, from
several local steps, and batches in part. Here the networks are smaller, and an image counts as recovered when its SSIM
is at least 0.9. The server's rate is so small that every upload is made at the initial parameters. Labels are inferred.
The table also has the training image nearest to each victim, an upper bound on any guess that copies one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.core import registry
from fedarena.core.text.figures import Strip, gallery, save_png
from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.metrics.image_similarity import ssim
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name
from fedarena.runs import trial

SETTING = "inverting-gradients as the server of an undefended federation, initial parameters, labels inferred"
RECOVERED = 0.9
"""The SSIM from which an image counts as recovered in this table."""

MEASURED = ("recovered", "ssim", "psnr", "label_accuracy", "nearest_ssim", "cpu_seconds")
PICTURES = ("originals", "guesses")
STILL = 1e-9
"""The server's rate: parameters stay where they start."""


@dataclass(frozen=True)
class Case:
    """Uploads to invert.

    Attributes:
        title: the name by which `--only` selects it. victims: the number of uploads. attack: its options.
        batch: the samples of a step. epochs: passes over the local samples; 0: one gradient.
        samples: the samples behind an upload, if they are more than those of a step. lr: the clients' learning rate.
    """

    title: str
    dataset: str
    model: str
    victims: int
    attack: Options
    batch: int = 1
    epochs: int = 0
    samples: int = 0
    lr: float = 0.1


QUICK = Options(iterations=800)
"""Which images are recovered depends on the random weights: on some seeds all, on others none."""

ROUNDED = Options(iterations=2400, lr=0.03, tv=3e-3, decay="cosine", kinks=2.0, colours=True)
"""For networks of ReLUs and max pooling, whose gradient jumps; chosen on the images of seed 0 alone."""

POLISHED = Options(iterations=400, polish=2000)
"""For smooth networks, whose gradient depends on some directions in the image far less than on others; chosen on
MNIST's images of seeds 2 and 3."""

CASES = (
    Case(
        title="MNIST, lenet-dlg, single images, one gradient",
        dataset="mnist",
        model="lenet-dlg",
        victims=6,
        attack=QUICK,
    ),
    Case(
        title="MNIST, lenet-dlg, L-BFGS at the end, single images, one gradient",
        dataset="mnist",
        model="lenet-dlg",
        victims=6,
        attack=POLISHED,
    ),
    Case(
        title="CIFAR-10, cnn-cifar10, single images, one gradient",
        dataset="cifar10",
        model="cnn-cifar10",
        victims=4,
        attack=Options(),
    ),
    Case(
        title="CIFAR-10, cnn-cifar10, kinks rounded off, single images, one gradient",
        dataset="cifar10",
        model="cnn-cifar10",
        victims=4,
        attack=ROUNDED,
    ),
    Case(
        title="CIFAR-10, lenet-dlg, single images, one gradient",
        dataset="cifar10",
        model="lenet-dlg",
        victims=4,
        attack=Options(),
    ),
    Case(
        title="CIFAR-10, lenet-dlg, L-BFGS at the end, single images, one gradient",
        dataset="cifar10",
        model="lenet-dlg",
        victims=4,
        attack=POLISHED,
    ),
    Case(
        title="MNIST, lenet-dlg, L-BFGS at the end, single images, 5 local steps",
        dataset="mnist",
        model="lenet-dlg",
        victims=3,
        attack=POLISHED,
        epochs=5,
    ),
    *(
        Case(
            title=f"MNIST, lenet-dlg, L-BFGS at the end, 5 local steps on an image each, rate {rate}",
            dataset="mnist",
            model="lenet-dlg",
            victims=2,
            attack=POLISHED,
            epochs=1,
            samples=5,
            lr=rate,
        )
        for rate in (0.1, 0.001)
    ),
    Case(
        title="MNIST, lenet-dlg, batches of 4, one gradient",
        dataset="mnist",
        model="lenet-dlg",
        victims=2,
        attack=QUICK,
        batch=4,
    ),
    Case(
        title="MNIST, lenet-dlg, L-BFGS at the end, batches of 4, one gradient",
        dataset="mnist",
        model="lenet-dlg",
        victims=2,
        attack=POLISHED,
        batch=4,
    ),
    Case(
        title="CIFAR-10, cnn-cifar10, batches of 4, one gradient",
        dataset="cifar10",
        model="cnn-cifar10",
        victims=1,
        attack=Options(),
        batch=4,
    ),
    Case(
        title="CIFAR-10, lenet-dlg, L-BFGS at the end, batches of 4, one gradient",
        dataset="cifar10",
        model="lenet-dlg",
        victims=2,
        attack=POLISHED,
        batch=4,
    ),
)
BY_TITLE = {case.title: case for case in CASES}


def measure(case: Case, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row: how much of one case's uploads is recovered, and the pictures as bytes."""
    (prepared,) = trial.prepare(group(case, machine, seed))
    began = time.process_time()
    record, pictures = trial.attack(prepared, progress)
    if pictures is None:
        raise RuntimeError(record["reason"])
    m = record["metrics"]
    return [
        {
            "images": case.title,
            "iterations": case.attack.iterations,
            "starts": case.attack.restarts,
            "count": int(m["images"]),
            "recovered": float((ssim(pictures.guesses.double(), pictures.originals) >= RECOVERED).double().mean()),
            "ssim": m["ssim"],
            "psnr": m["psnr"],
            "label_accuracy": m["label_accuracy"],
            "nearest_ssim": m["prior_nearest_ssim"],
            "cpu_seconds": time.process_time() - began,
            "originals": as_bytes(pictures.originals),
            "guesses": as_bytes(pictures.guesses),
        }
    ]


def group(case: Case, machine: Machine, seed: int) -> GroupSpec:
    """The run behind a case, with one upload more than is attacked."""
    schedule = Schedule(
        rounds=case.victims + 1,
        batch_size=case.batch,
        local_epochs=case.epochs,
        local_samples=(case.samples or case.batch) if case.epochs else None,
        lr=case.lr,
        server_lr=STILL,
    )
    problem = ProblemSpec(
        dataset=case.dataset,
        model=case.model,
        partition="iid",
        clients=1,
        model_options=registry.find("model", case.model).parse({}),
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=schedule,
    )
    options = Options(**{**vars(case.attack), "victims": case.victims, "window": case.victims + 1})
    return GroupSpec(
        problem=problem,
        defense=MethodSpec("fedavg"),
        attack=MethodSpec("inverting-gradients", options),
        threats=(Threat("server", "adaptive"),),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows without pictures."""
    return [{name: value for name, value in row.items() if name not in PICTURES} for row in rows], []


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw originals above guesses, case by case, for the first seed."""
    strips = []
    for row in (r for r in rows if r["seed"] == rows[0]["seed"]):
        strips.append(Strip(row["images"].replace(", ", ",\n", 1), as_images(row["originals"]), gap=True))
        strips.append(Strip(f"recovered {100 * row['recovered']:.0f} %", as_images(row["guesses"])))
    save_png(gallery(strips, "Inverting Gradients, initial parameters: originals, and what the server reads"), path)


def as_bytes(images: Tensor) -> list[Any]:
    """Images [n, channels, height, width] in [0, 1] → nested lists of 0 to 255."""
    stored: list[Any] = (255 * images.clamp(0, 1)).round().to(torch.uint8).tolist()
    return stored


def as_images(stored: Sequence[Any]) -> Tensor:
    """The inverse of `as_bytes`."""
    return torch.tensor(stored, dtype=torch.uint8).float() / 255


TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_TITLE),
    rows=measured_by_name(BY_TITLE, measure),
    measured=MEASURED,
    compact=compact,
    draw=draw,
)
