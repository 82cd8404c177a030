"""Inverting Gradients of this library against the `breaching` library on the same gradient: PSNR and CPU time.

The same network at the same parameters, the same images and labels, the same uploads of FedSGD, the same number of
iterations, τ the same, and from the same start. Pixels are in [0, 1] for both, with no normalisation. breaching runs
through its own classes (`breaching.attacks.prepare_attack`, configuration `invertinggradients`), with labels given to
both. Its total variation takes images of three channels only, so that on MNIST both do without. Candidates take turns,
image by image, in one process on one thread. Exits with 1 where ours takes more CPU time by over 5 %, by which two runs
of the same differ, or has a lower mean PSNR: of few images that is chance, as rounding is enough for descents along
signs to part.

    OMP_NUM_THREADS=1 python inversion.py [--iterations 400] [--images 4]

Needs CIFAR-10 and MNIST (FEDARENA_DATA) and breaching 0.1.2:

    pip install breaching hydra-core lpips pyyaml
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from statistics import fmean
from typing import Any

import torch
from side_by_side import machine
from torch import Tensor, nn

from fedarena import images, vision
from fedarena.attacks.cards.inverting_gradients import Options
from fedarena.attacks.inverting_gradients import InvertingGradients
from fedarena.defenses.fedavg import FedAvg
from fedarena.observe import ThroughProtocol
from fedarena.options import NoOptions
from fedarena.problem import Problem, ProblemSpec, build
from fedarena.registry import find
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.threat import NotApplicable, Threat
from fedarena.view import Observation, View

SLACK = 1.05
"""Factor by which CPU times of the same work differ on a busy machine."""

CELLS = (("mnist", "lenet-dlg", 0.0), ("cifar10", "cnn-cifar10", 1e-3))
"""Data set, model, τ."""


class Facts(dict[str, Any]):
    """What breaching reads both as attributes and as entries."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def problem(dataset: str, model: str) -> Problem:
    """One client with all the data, at initial parameters."""
    options = find("model", model).parse({})
    whole = find("partition", "iid").parse({})
    return build(ProblemSpec(dataset, model, "iid", 1, options, whole, Schedule(batch_size=1)), 0)


def ours(p: Problem, seen: Observation, y: Tensor, iterations: int, tv: float) -> Tensor:
    """This library's guess at one image."""
    view = View(
        Threat("server", "adaptive"), "upload", p.task.input_shape, p.task.n_classes, (replace(seen, labels=y),)
    )
    guess = InvertingGradients(Options(iterations=iterations, tv=tv, labels="given"))(view, Rng(1))
    if isinstance(guess, NotApplicable):
        raise RuntimeError(guess.reason)
    (found,) = guess
    return found.images  # type: ignore[union-attr]


def peer(p: Problem, iterations: int, tv: float) -> Callable[[Observation, Tensor], Tensor]:
    """breaching's guess at one image."""
    vision.declare_operators()
    attacks = import_module("breaching.attacks")
    from omegaconf import OmegaConf

    configured: Any = OmegaConf.create(
        {
            "type": "invertinggradients",
            "attack_type": "optimization",
            "label_strategy": None,
            "token_recovery": "from-labels",
            "objective": {"type": "cosine-similarity", "scale": 1.0, "task_regularization": 0.0},
            "restarts": {"num_trials": 1, "scoring": "cosine-similarity"},
            "init": "randn",
            "normalize_gradients": False,
            "optim": {
                "optimizer": "adam",
                "signed": "hard",
                "step_size": 0.1,
                "boxed": True,
                "max_iterations": iterations,
                "step_size_decay": "step-lr",
                "langevin_noise": 0.0,
                "warmup": 0,
                "grad_clip": None,
                "callback": iterations + 1,
            },
            "augmentations": None,
            "differentiable_augmentations": False,
            "regularization": {"total_variation": {"scale": tv, "inner_exp": 1, "outer_exp": 1}},
            "impl": {"dtype": "float", "mixed_precision": False, "JIT": None},
        }
    )
    module: nn.Module = p.task.model
    module.load_state_dict(p.init)
    shape = p.task.input_shape
    data = Facts(shape=shape, mean=(0.0,) * shape[0], std=(1.0,) * shape[0], classes=10, modality="vision")
    setup = {"dtype": torch.float, "device": torch.device("cpu")}

    def guess(seen: Observation, y: Tensor) -> Tensor:
        attacker = attacks.prepare_attack(module, nn.CrossEntropyLoss(), configured, setup)
        payload = [{"parameters": list(p.init.values()), "buffers": None, "metadata": data}]
        told = Facts(num_data_points=1, labels=y, local_hyperparams=None)
        shared = [{"gradients": list(seen.target.values()), "buffers": None, "metadata": told}]
        start = Rng(1).child("inverting-gradients", 0).child("images").torch()  # which ours draws
        found, _ = attacker.reconstruct(payload, shared, {}, initial_data=torch.randn((1, *shape), generator=start))
        image: Tensor = found["data"]
        return image

    return guess


def measure(dataset: str, model: str, tv: float, iterations: int, count: int) -> bool:
    """Prints a row a library. True where ours is no worse and no slower."""
    p = problem(dataset, model)
    theirs = peer(p, iterations, tv)
    seconds, psnr = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    order = torch.randperm(len(p.y), generator=Rng(0).torch())
    defense = FedAvg(NoOptions(), p.task)
    simulate = ThroughProtocol(defense, p.init, (0,))
    for t in range(count):
        x, y = p.inputs(order[t : t + 1]), p.y[order[t : t + 1]]
        target = simulate(x, nn.functional.one_hot(y, p.task.n_classes).float())
        seen = Observation(t, (0,), 1, target, simulate, output_bias=p.task.output_bias)
        for name, attack in (
            ("FedArena", lambda seen=seen, y=y: ours(p, seen, y, iterations, tv)),
            ("breaching", lambda seen=seen, y=y: theirs(seen, y)),
        ):
            began = time.process_time()
            found = attack()
            seconds[name].append(time.process_time() - began)
            psnr[name].append(float(images.psnr(images.valid(found.detach()), x).mean()))
    for name in seconds:
        total = sum(seconds[name])
        every = ", ".join(f"{v:.1f}" for v in psnr[name])
        print(
            f"| {dataset}, {model} | {name} | {fmean(psnr[name]):.2f} ({every}) | "
            f"{1e3 * total / iterations / count:.2f} | {total:.1f} |",
            flush=True,
        )
    better = fmean(psnr["FedArena"]) >= fmean(psnr["breaching"])
    return better and sum(seconds["FedArena"]) <= SLACK * sum(seconds["breaching"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=400, help="of each library and image")
    parser.add_argument("--images", type=int, default=4, help="single images of each data set")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + f"; {given.iterations} iterations\n")
    print("| work | library | PSNR, dB: mean (each) | CPU ms an iteration | CPU s |\n|---|---|---|---|---|", flush=True)
    met = [measure(*cell, given.iterations, given.images) for cell in CELLS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
