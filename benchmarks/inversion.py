"""Inverting Gradients of this library against the `breaching` library on the same gradients: PSNR and CPU time.

The same network at the same parameters, the same image and label, the same upload of FedSGD, from the same starts; each
image with parameters of its own. Pixels are in [0, 1] for both, with no normalisation. breaching runs through its own
classes (`breaching.attacks.prepare_attack`, configuration `invertinggradients`), with labels given to both. Its total
variation takes images of three channels only, so that on MNIST both do without. Candidates take turns, image by image,
in one process on one thread. Each library runs twice:

    the paper's search    the same recipe, as many iterations, τ the same
    its options           ours beyond the paper, as many iterations as fit into breaching's CPU time: L-BFGS from a
                          dark start for a smooth network, and for one of ReLUs kinks that are rounded off. breaching's
                          nearest to them: its `deepleakage`, which is L-BFGS, from that start, and our learning rate,
                          decay and total variation of colours, which it has, too

Descents along signs part from each other by rounding alone, so that one image tells nothing: the difference of PSNR is
a mean over images with its 95 % interval (Student's t over the pairs), for our paper's search from breaching's, for our
options from the better of breaching's two. Exits with 1 where ours takes more CPU time than breaching's paper's search
by over 5 %, by which two runs of the same differ, where our paper's search is not told to be less than 3 dB behind, or
our options to be ahead: few images cannot tell.

    OMP_NUM_THREADS=1 python inversion.py [--iterations 400] [--images 64 32]

Needs CIFAR-10 and MNIST (FEDARENA_DATA) and breaching 0.1.2:

    pip install breaching hydra-core lpips pyyaml
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from statistics import fmean, median
from typing import Any

import torch
from side_by_side import machine, note
from torch import Tensor, nn

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.attacks.reconstruction.helpers.matching import DARK
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import ThroughProtocol
from fedarena.contracts.view import View
from fedarena.core import torchvision_import as vision
from fedarena.core.options import NoOptions
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.goals.metrics import image_similarity as images
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

SLACK = 1.05
"""Factor by which CPU times of the same work differ on a busy machine."""

OURS, CHOSEN = "FedArena, the paper's search", "FedArena, its options"
PEER, NEAREST = "breaching, the paper's search", "breaching, its options"


@dataclass(frozen=True)
class Cell:
    """What is inverted.

    Attributes:
        dataset, model: from the registry.
        tv: τ of breaching and of ours with the paper's search.
        chosen: breaching's number of iterations → our options beyond the paper, tried out on seeds 100 to 115.
        nearest: the same → what of breaching's recipe is to be changed for what it has that is nearest to them.
    """

    dataset: str
    model: str
    tv: float
    chosen: Callable[[int], Options]
    nearest: Callable[[int], Changes]


Changes = dict[str, dict[str, Any]]
"""Of breaching's configuration, by group."""

LINES = 20
"""Evaluations within an iteration of torch's L-BFGS, at most."""


def polished(iterations: int) -> Options:
    """For smooth networks: L-BFGS alone, five eighths of the evaluations, which cost half as much again each."""
    return Options(labels="given", tv=0.0, iterations=1, polish=max(1, 5 * iterations // 8), init="dark")


def rounded(iterations: int) -> Options:
    """For networks of ReLUs and max pooling: five eighths of the iterations, which cost half as much again each."""
    few = max(1, 5 * iterations // 8)
    return Options(labels="given", tv=3e-3, iterations=few, lr=0.05, decay="cosine", kinks=1.0, colours=True)


def leakage(iterations: int) -> Changes:
    """breaching's `deepleakage` with labels given: squares, by L-BFGS."""
    optimizer = {"optimizer": "L-BFGS", "signed": None, "step_size": 1.0, "boxed": False, "step_size_decay": None}
    return {"objective": {"type": "euclidean"}, "optim": {**optimizer, "max_iterations": max(1, iterations // LINES)}}


def colours(iterations: int) -> Changes:
    """What `rounded` sets and breaching has."""
    tv = {"scale": 3e-3, "inner_exp": 1, "outer_exp": 1, "double_opponents": True}
    return {
        "optim": {"step_size": 0.05, "step_size_decay": "cosine-decay"},
        "regularization": {"total_variation": tv},
    }


NEAR = 3.0
"""dB: how far behind is not behind, for descents that differ by rounding alone."""

CELLS = (
    Cell("mnist", "lenet-dlg", 0.0, polished, leakage),
    Cell("cifar10", "cnn-cifar10", 1e-3, rounded, colours),
)


class Facts(dict[str, Any]):
    """What breaching reads both as attributes and as entries."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def problem(dataset: str, model: str, seed: int) -> Problem:
    """One client with all the data, at initial parameters."""
    options = find("model", model).parse({})
    whole = find("partition", "iid").parse({})
    return build(
        ProblemSpec(
            dataset,
            model=model,
            partition="iid",
            clients=1,
            model_options=options,
            partition_options=whole,
            schedule=Schedule(batch_size=1),
        ),
        seed,
    )


def ours(p: Problem, seen: Observation, y: Tensor, options: Options) -> Tensor:
    """This library's guess at one image."""
    view = View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=p.task.input_shape,
        n_classes=p.task.n_classes,
        observations=(replace(seen, labels=y),),
    )
    guess = InvertingGradients(options)(view, Rng(1))
    if isinstance(guess, NotApplicable):
        raise RuntimeError(guess.reason)
    (found,) = guess
    return found.images  # type: ignore[union-attr]


def peer(
    p: Problem, iterations: int, tv: float, changes: Changes, init: str = "normal"
) -> Callable[[Observation, Tensor], Tensor]:
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
    for group, values in changes.items():
        configured[group].update(values)
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
        first = {"normal": torch.randn, "dark": torch.rand}[init]((1, *shape), generator=start)
        first = DARK * first if init == "dark" else first
        found, _ = attacker.reconstruct(payload, shared, {}, initial_data=first)
        image: Tensor = found["data"]
        return image

    return guess


Measured = dict[str, list[float]]
"""Candidate → one number an image."""


def measure(cell: Cell, iterations: int, count: int) -> tuple[Measured, Measured]:
    """CPU seconds and PSNR."""
    seconds, psnr = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    same = Options(labels="given", tv=cell.tv, iterations=iterations)
    chosen = cell.chosen(iterations)
    for seed in range(count):
        p = problem(cell.dataset, cell.model, seed)
        theirs = peer(p, iterations, cell.tv, {})
        nearest = peer(p, iterations, cell.tv, cell.nearest(iterations), chosen.init)
        defense = FedAvg(NoOptions(), p.task)
        simulate = ThroughProtocol(defense, p.init, (0,))
        which = torch.randperm(len(p.y), generator=Rng(seed).torch())[:1]
        x, y = p.inputs(which), p.y[which]
        target = simulate(x, nn.functional.one_hot(y, p.task.n_classes).float())
        seen = Observation(0, clients=(0,), images=1, target=target, simulate=simulate, output_bias=p.task.output_bias)
        candidates: dict[str, Callable[[], Tensor]] = {
            OURS: partial(ours, p, seen, y, same),
            CHOSEN: partial(ours, p, seen, y, chosen),
            PEER: partial(theirs, seen, y),
            NEAREST: partial(nearest, seen, y),
        }
        for name, attack in candidates.items():
            began = time.process_time()
            found = attack()
            seconds[name].append(time.process_time() - began)
            psnr[name].append(float(images.psnr(images.valid(found.detach()), x).mean()))
        note(f"{cell.dataset}, image {seed + 1} of {count}: " + ", ".join(f"{psnr[n][-1]:.1f}" for n in candidates))
    return seconds, psnr


def show(cell: Cell, seconds: Measured, psnr: Measured) -> bool:
    """Prints a row a candidate. True where ours is no worse and no slower."""
    peers_time, met = sum(seconds[PEER]), True
    rival = max((PEER, NEAREST), key=lambda name: fmean(psnr[name]))
    for name, values in psnr.items():
        row = [f"{cell.dataset}, {cell.model}", name, f"{fmean(values):.1f}", f"{median(values):.1f}"]
        row += [f"{fmean(a >= 30 for a in values):.0%}", f"{fmean(seconds[name]):.2f}"]
        if name in (PEER, NEAREST):
            row += ["", f"x{sum(seconds[name]) / peers_time:.2f}", ""]
        else:
            held_to = PEER if name == OURS else rival
            ahead = mean([a - b for a, b in zip(values, psnr[held_to], strict=True)])
            half, slower = math.inf if ahead.half is None else ahead.half, sum(seconds[name]) / peers_time
            good = ahead.value - half > (-NEAR if name == OURS else 0) and slower <= SLACK
            row += [f"{ahead.value:+.1f} ± {half:.1f}", f"x{slower:.2f}", "met" if good else "MISSED"]
            met &= good
        print("| " + " | ".join(row) + " |", flush=True)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=400, help="of breaching, for each image")
    parser.add_argument("--images", type=int, nargs=2, default=(64, 32), help="of MNIST and of CIFAR-10")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + f"; {given.iterations} iterations\n")
    print("| work | candidate | PSNR, dB | median | at least 30 dB | CPU s an image | ahead, dB | CPU time | bar |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    met = [show(cell, *measure(cell, given.iterations, n)) for cell, n in zip(CELLS, given.images, strict=True)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
