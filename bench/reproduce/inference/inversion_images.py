"""Inverting Gradients on images, by this library's attack of that name, at initial parameters.

The paper (Geiping et al. 2020, Sections 5 and 6) shows single images of CIFAR-10 and larger from one gradient, from
several local steps, and batches in part. Here the networks are smaller, and an image counts as recovered when its SSIM
is at least 0.9. The server's rate is so small that every upload is made at the initial parameters. Labels are inferred.
Beside the attack stands the training image nearest to each victim, an upper bound on any guess that copies one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.core import registry
from fedarena.core.text.figures import Strip, gallery
from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.place import Where
from fedarena.runs import trial

SETTING = "inverting-gradients as the server of an undefended federation, initial parameters, labels inferred"
MEASURED = ("recovered", "ssim", "psnr", "label_accuracy", "nearest_ssim", "cpu_seconds")
PICTURES = ("originals", "guesses")
STILL = 1e-9
"""The server's rate: parameters stay where they start."""


@dataclass(frozen=True)
class Case:
    """Uploads to invert.

    Attributes:
        title: what `--only` picks it by. victims: how many uploads. attack: options.
        batch: samples of a step. epochs: passes over the local samples; 0: one gradient.
        samples: behind an upload, where that is more than one step's. lr: the clients' learning rate.
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
"""Which images come back is a matter of the weights that are drawn: on some seeds all, on others none."""

ROUNDED = Options(iterations=2400, lr=0.03, tv=3e-3, decay="cosine", kinks=2.0, colours=True)
"""For networks of ReLUs and max pooling, whose gradient jumps; chosen on the images of seed 0, no other."""

POLISHED = Options(iterations=400, polish=2000)
"""For smooth networks, whose gradient feels some directions in the image far less than others; tried out on MNIST's
images of seeds 2 and 3."""

CASES = (
    Case("MNIST, lenet-dlg, single images, one gradient", "mnist", "lenet-dlg", 6, QUICK),
    Case("MNIST, lenet-dlg, L-BFGS at the end, single images, one gradient", "mnist", "lenet-dlg", 6, POLISHED),
    Case("CIFAR-10, cnn-cifar10, single images, one gradient", "cifar10", "cnn-cifar10", 4, Options()),
    Case("CIFAR-10, cnn-cifar10, kinks rounded off, single images, one gradient", "cifar10", "cnn-cifar10", 4, ROUNDED),
    Case("CIFAR-10, lenet-dlg, single images, one gradient", "cifar10", "lenet-dlg", 4, Options()),
    Case("CIFAR-10, lenet-dlg, L-BFGS at the end, single images, one gradient", "cifar10", "lenet-dlg", 4, POLISHED),
    Case(
        "MNIST, lenet-dlg, L-BFGS at the end, single images, 5 local steps", "mnist", "lenet-dlg", 3, POLISHED, epochs=5
    ),
    *(
        Case(
            f"MNIST, lenet-dlg, L-BFGS at the end, 5 local steps on an image each, rate {rate}",
            *("mnist", "lenet-dlg", 2, POLISHED),
            epochs=1,
            samples=5,
            lr=rate,
        )
        for rate in (0.1, 0.001)
    ),
    Case("MNIST, lenet-dlg, batches of 4, one gradient", "mnist", "lenet-dlg", 2, QUICK, batch=4),
    Case("MNIST, lenet-dlg, L-BFGS at the end, batches of 4, one gradient", "mnist", "lenet-dlg", 2, POLISHED, batch=4),
    Case("CIFAR-10, cnn-cifar10, batches of 4, one gradient", "cifar10", "cnn-cifar10", 1, Options(), batch=4),
    Case(
        *("CIFAR-10, lenet-dlg, L-BFGS at the end, batches of 4, one gradient", "cifar10", "lenet-dlg", 2, POLISHED),
        batch=4,
    ),
)
PIECES = tuple(case.title for case in CASES)


def rows(piece: str, where: Where, seed: int, progress: Callable[[float, str], None]) -> list[dict[str, Any]]:
    """One row."""
    (case,) = (case for case in CASES if case.title == piece)
    return [measure(case, where, seed, lambda share, text: progress(share, f"{case.title}: {text}"))]


def measure(case: Case, where: Where, seed: int, progress: Callable[[float, str], None]) -> dict[str, Any]:
    """How much comes back of one case's uploads, and the pictures as bytes."""
    o = {**vars(case.attack), "victims": case.victims, "window": case.victims + 1}
    schedule = Schedule(
        rounds=case.victims + 1,
        batch_size=case.batch,
        local_epochs=case.epochs,
        local_samples=(case.samples or case.batch) if case.epochs else None,
        lr=case.lr,
        server_lr=STILL,
    )
    model, iid = registry.find("model", case.model).parse({}), registry.find("partition", "iid").parse({})
    problem = ProblemSpec(case.dataset, case.model, "iid", 1, model, iid, schedule)
    attack = MethodSpec("inverting-gradients", Options(**o))
    spec = GroupSpec(
        problem, MethodSpec("fedavg"), attack, (Threat("server", "adaptive"),), seed, where.device, where.data_dir
    )
    (cell,) = trial.prepare(spec)
    began = time.process_time()
    record, pictures = trial.attack(cell, progress)
    if pictures is None:
        raise RuntimeError(record["reason"])
    m = record["metrics"]
    return {
        "images": case.title,
        "iterations": case.attack.iterations,
        "starts": case.attack.restarts,
        "count": int(m["images"]),
        "recovered": m["recovered"],
        "ssim": m["ssim"],
        "psnr": m["psnr"],
        "label_accuracy": m["label_accuracy"],
        "nearest_ssim": m["prior_nearest_ssim"],
        "cpu_seconds": time.process_time() - began,
        "originals": as_bytes(pictures.originals),
        "guesses": as_bytes(pictures.guesses),
    }


def compact(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """All but the pictures."""
    return [{name: value for name, value in row.items() if name not in PICTURES} for row in rows], []


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Originals above guesses, case by case; of the first seed."""
    strips = []
    for row in (r for r in rows if r["seed"] == rows[0]["seed"]):
        strips.append(Strip(row["images"].replace(", ", ",\n", 1), as_images(row["originals"]), gap=True))
        strips.append(Strip(f"recovered {100 * row['recovered']:.0f} %", as_images(row["guesses"])))
    gallery(strips, "Inverting Gradients, initial parameters: originals, and what the server reads", path)


def as_bytes(images: Tensor) -> list[Any]:
    """Images [n, channels, height, width] in [0, 1] → nested lists of 0 to 255."""
    found: list[Any] = (255 * images.clamp(0, 1)).round().to(torch.uint8).tolist()
    return found


def as_images(stored: Sequence[Any]) -> Tensor:
    """Undoes `as_bytes`."""
    return torch.tensor(stored, dtype=torch.uint8).float() / 255
