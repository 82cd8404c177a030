"""Our attacks that read or solve for samples beside those of breaching: either tool reads the same gradients.

A row has a kind of attack and a model at which plain PyTorch computed the gradient of the mean cross-entropy:

    analytic       a linear model and a dense ReLU network; labels within a batch are distinct
    imprint        a block of two dense layers in front of a small CNN, with breaching's parameters and with ours
    trap weights   the same block with those of When the Curious Abandon Honesty, breaching's and ours
    R-GAP          convolutions without biases and leaky ReLUs, as breaching's `cnn6`, on images cut to 16 by 16
    APRIL          a vision transformer whose first block has neither a norm nor a shortcut, as breaching's; a usual one
    TAG            one encoder layer of torch.nn on notes of seven words

Images are of CIFAR-10, with pixels in [0, 1]; notes are `clinic-notes`. breaching's two blocks are made for normalised
images, so the normalisation is folded into their first layer. Ours get thresholds from 500 other images. Guesses are
assigned to the originals by the least squared error. A seed draws the samples and the model. `exact` is the share of
images with a PSNR of 60 dB or more; for notes it is that of notes with all words right.

    OMP_NUM_THREADS=1 python read_beside_breaching.py
    OMP_NUM_THREADS=1 python read_beside_breaching.py --only imprint,april --seeds 2

Needs CIFAR-10 (FEDARENA_DATA) and breaching: pip install "fedarena[breaching]"
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from statistics import median
from typing import Any

import torch
from invert_beside_breaching import CLASSES, SHAPE, samples
from readable_models import Inside, Notes, Vit, dense, linear, recursive
from side_by_side import machine
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.defense import State
from fedarena.contracts.view import Population
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.text import numbers
from fedarena.core.threat import NotApplicable
from fedarena.core.torchvision_import import declare_operators
from fedarena.datasets import load
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation.foreign_gradient import view_of
from fedarena.goals.metrics.image_similarity import psnr, valid
from fedarena.goals.metrics.reconstruction import assign
from fedarena.interop.global_seed import global_seed
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

EXACT = 60.0
"""PSNR of an image that counts as exact."""
UNITS = 64
"""Of the block's first layer; breaching's default."""
OWN = 500
"""Samples of the attacker's own."""

Made = tuple[nn.Module, Tensor, Tensor]


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        attack: what the table calls it. of: whose gradient.
        made: seed → the model, samples and their classes.
        theirs: breaching's name of the attack. ours: our name.
        block: the structure of the block, if there is one, which breaching is told. text: whether samples are texts.
    """

    attack: str
    of: str
    made: Callable[[int], Made]
    theirs: str
    ours: str
    block: str = ""
    text: bool = False


def breaching(name: str = "") -> Any:
    """The library or a module of it."""
    declare_operators()  # it imports torchvision
    return import_module(f"breaching.{name}".rstrip("."))


@cache
def configured(attack: str) -> Any:
    """breaching's configuration of an attack."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its release calls hydra in a way that a later one warns of
        return breaching().get_attack_config(attack)


def images(seed: int, n: int, distinct: bool = False) -> tuple[Tensor, Tensor]:
    """n samples of a seed, of distinct classes where that is asked for."""
    x, y = (t[:-OWN] for t in samples())
    if distinct:
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
        first = [int(order[y[order] == c][0]) for c in y[order].unique(sorted=False)]
        chosen = torch.tensor(first)[torch.randperm(len(first), generator=torch.Generator().manual_seed(seed))[:n]]
    else:
        chosen = torch.arange(seed * n, (seed + 1) * n) % len(y)
    return x[chosen], y[chosen]


def plain(model: Callable[[], nn.Module], n: int, distinct: bool = False, side: int = 32) -> Callable[[int], Made]:
    """seed → a model at its initial parameters, and images of which the middle is taken."""

    def made(seed: int) -> Made:
        x, y = images(seed, n, distinct)
        edge = (32 - side) // 2
        return model(), x[..., edge : 32 - edge, edge : 32 - edge], y

    return made


def notes(n: int) -> Callable[[int], Made]:
    """seed → a transformer, and notes."""

    def made(seed: int) -> Made:
        data = load("clinic-notes")
        chosen = slice(seed * n, (seed + 1) * n)
        x, y = torch.from_numpy(data.x_train[chosen]).float(), torch.from_numpy(data.y_train[chosen]).long()
        return Notes(*data.x_train.shape[1:], data.n_classes), x, y

    return made


def with_block(kind: str, n: int, attack: str = "") -> Callable[[int], Made]:
    """seed → a small CNN behind breaching's block, with the parameters of the attack of ours that is named, if any."""

    def made(seed: int) -> Made:
        x, y = images(seed, n)
        options = {"mode": 32, "gain": 1.0} if kind == "ImprintBlock" else {}
        with redirect_stdout(io.StringIO()):
            block = getattr(breaching("cases.malicious_modifications"), kind)(SHAPE, UNITS, **options)
        rest = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4096, CLASSES))
        model = nn.Sequential(block, rest)
        own, classes = (t[-OWN:] for t in samples())
        if attack:
            craft(model, attack, Population(own, classes), n, seed)
        else:
            fold_normalisation(block.linear0, own)
        return model, x, y

    return made


@torch.no_grad()
def fold_normalisation(layer: nn.Linear, x: Tensor) -> None:
    """Make a layer take pixels in [0, 1] where it took ones with mean 0 and variance 1 in each colour."""
    pixels = x.shape[2] * x.shape[3]
    mean, std = (t.repeat_interleave(pixels) for t in (x.mean((0, 2, 3)), x.std((0, 2, 3))))
    layer.weight /= std
    layer.bias -= layer.weight @ mean


@torch.no_grad()
def craft(model: nn.Module, attack: str, own: Population, n: int, seed: int) -> None:
    """Give a model the parameters that a malicious server of ours would send."""
    task = Task(model, input_shape=SHAPE, n_classes=CLASSES, sizes=(n,), schedule=Schedule(rounds=1, batch_size=n))
    params = {name: p.detach().clone() for name, p in model.named_parameters()}
    server = compose.make_inference(compose.parse_attack(attack))
    assert isinstance(server, ActiveInference)
    chance = Opportunity(FedAvg(NoOptions(), task), State(params), participants=(0,), victim=0, population=own)
    bait = server.bait(chance, Rng(seed))
    assert isinstance(bait, Bait), bait
    for name, p in model.named_parameters():
        p.copy_(bait.message.params[name])


def cases() -> dict[str, list[Case]]:
    """The rows by the names that `--only` takes."""
    analytic = {"theirs": "analytic", "ours": "analytic"}
    rtf = {"theirs": "imprint", "ours": "imprint", "block": "cumulative"}
    traps = {"theirs": "imprint", "ours": "trap-weights", "block": "sparse"}
    honesty = "CuriousAbandonHonesty"
    return {
        "analytic": [
            Case(f"analytic, batch {n}", of, plain(make, n, distinct=True), **analytic)
            for of, make in (("a linear model", linear), ("a dense network", dense))
            for n in (1, 4)
        ],
        "imprint": [
            Case(f"imprint, batch {n}", f"the block, {whose}", with_block("ImprintBlock", n, attack), **rtf)
            for n in (8, 32)
            for whose, attack in (("breaching's", ""), ("ours", "imprint"))
        ],
        "trap-weights": [
            Case(f"trap weights, batch {n}", f"the block, {whose}", with_block(honesty, n, attack), **traps)
            for n in (8, 32)
            for whose, attack in (("breaching's", ""), ("ours", "trap-weights"))
        ],
        "r-gap": [Case("R-GAP", "four convolutions", plain(recursive, 1, side=16), theirs="rgap", ours="r-gap")],
        "april": [
            Case("APRIL", of, plain(lambda usual=usual: Inside(Vit(usual)), 1), theirs="april_analytic", ours="april")
            for of, usual in (("breaching's block", False), ("a usual block", True))
        ],
        "tag": [Case(f"TAG, batch {n}", "notes", notes(n), theirs="tag", ours="tag", text=True) for n in (1, 4)],
    }


def read_by_breaching(
    case: Case, model: nn.Module, gradient: list[Tensor], x: Tensor, seed: int
) -> Callable[[], Tensor]:
    """breaching's attack, ready to start; it raises what breaching raises."""
    task = {"shape": list(x.shape[1:2] if case.text else x.shape[1:]), "task": "classification"}
    task |= {"modality": "text" if case.text else "vision", "classes": model(x).shape[1]}
    metadata = import_module("omegaconf").OmegaConf.create(task)
    params = [p.detach() for p in model.parameters()]
    payload = {"parameters": params, "buffers": [], "metadata": metadata}
    told = {"num_data_points": len(x), "labels": None, "local_hyperparams": None}
    shared = {"gradients": [g.clone() for g in gradient], "buffers": None, "metadata": told}
    secrets = {"weight_idx": 0, "bias_idx": 1, "shape": SHAPE, "structure": case.block}
    setup = {"device": torch.device("cpu"), "dtype": torch.float}
    with redirect_stdout(io.StringIO()):
        attacker = breaching("attacks").prepare_attack(model, nn.CrossEntropyLoss(), configured(case.theirs), setup)

    def read() -> Tensor:
        with redirect_stdout(io.StringIO()):
            answer, _ = attacker.reconstruct([payload], [shared], {"ImprintBlock": secrets} if case.block else {})
        found: Tensor = answer["data"].detach()
        return nn.functional.one_hot(found, x.shape[-1]).float() if case.text else found

    return read


def read_by_ours(case: Case, model: nn.Module, gradient: list[Tensor], x: Tensor, seed: int) -> Callable[[], Tensor]:
    """Our attack on the view of a server, ready to start. It raises ValueError where it does not apply."""
    shape = {"input_shape": tuple(x.shape[1:]), "n_classes": model(x).shape[1]}
    view = view_of(model, gradient, images=len(x), **shape)
    attack = compose.make_inference(compose.parse_attack(case.ours))

    def read() -> Tensor:
        answer: Any = attack.run(view, Rng(seed), lambda share, text: None)
        if isinstance(answer, NotApplicable):
            raise ValueError(answer.reason)
        found: Tensor = answer[0].images
        return found

    return read


@dataclass
class Readings:
    """What a tool read off the gradients of a case.

    Attributes:
        found: of each gradient the quality of each sample, as in `quality`. seconds: CPU seconds of each.
        failure: why it read nothing.
    """

    found: list[Tensor]
    seconds: list[float]
    failure: str = ""

    def cells(self, text: bool) -> tuple[str, str, str, str]:
        """Mean, worst, share that is exact, and CPU seconds for a batch."""
        if self.failure:
            return self.failure, "", "", ""
        all_ = torch.cat(self.found)
        exact = (all_ >= (1.0 if text else EXACT)).double().mean()
        mean, worst = (f"{v:.0%}" if text else f"{v:.1f}" for v in (float(all_.mean()), float(all_.min())))
        return mean, worst, f"{exact:.0%}", f"{median(self.seconds):.3f}"


def quality(case: Case, guess: Tensor, x: Tensor) -> Tensor:
    """The PSNR of each image in dB, or the share of the words of each note that are right."""
    if case.text:
        order = assign(guess, x)
        return (guess[order].argmax(-1) == x.argmax(-1)).double().mean(1)
    return psnr(valid(guess)[assign(guess, x)], x.double())


def readings(case: Case, seeds: int, tool: Callable[..., Callable[[], Tensor]]) -> Readings:
    """What a tool reads. Its preparations and the judging are not timed."""
    made = Readings([], [])
    configured(case.theirs)
    for seed in range(seeds):
        with global_seed(Rng(seed)), sdpa_kernel(SDPBackend.MATH):  # fused attention has no second derivative
            model, x, y = case.made(seed)
            model.eval()
            gradient = list(torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters())))
            try:
                read = tool(case, model, gradient, x, seed)
                began = time.process_time()
                guess = read()
            except Exception as error:  # the other library's code may fail in any way
                made.failure = f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else repr(error)
                return made
            made.seconds.append(time.process_time() - began)
            made.found.append(quality(case, guess, x))
    return made


def ahead(case: Case, theirs: Readings, ours: Readings) -> str:
    """By how much ours is better, the mean over gradients with its 95 % interval (Student's t over the pairs)."""
    if theirs.failure or ours.failure:
        return ""
    pairs = zip(ours.found, theirs.found, strict=True)
    difference = numbers.mean([float((mine - other).mean()) for mine, other in pairs])
    scale, digits = (100, 0) if case.text else (1, 1)
    half = "?" if difference.half is None else f"{scale * difference.half:.{digits}f}"
    return f"{scale * difference.value:+.{digits}f} ± {half}"


def cells(case: Case, seeds: int) -> Iterator[str]:
    """Of breaching and then of ours what `Readings.cells` says, and the difference."""
    theirs, ours = (readings(case, seeds, tool) for tool in (read_by_breaching, read_by_ours))
    yield from theirs.cells(case.text)
    yield from ours.cells(case.text)
    yield ahead(case, theirs, ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = cases()
    parser.add_argument("--only", default=",".join(known), help="attacks, separated by commas")
    parser.add_argument("--seeds", type=int, default=8, help="gradients of each row")
    given = parser.parse_args()
    if odd := set(given.only.split(",")) - known.keys():
        parser.error(f"--only: {', '.join(sorted(odd))}, allowed: {', '.join(known)}")
    if given.seeds < 1:
        parser.error(f"--seeds is {given.seeds}, allowed: 1 or more")
    torch.set_num_threads(1)
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + f"; {given.seeds} seeds\n")
    measured = "mean | worst | exact | CPU s"
    print(f"| attack | gradient of | breaching: {measured} | FedArena: {measured} | ahead |")
    print("|" + "---|" * 11, flush=True)
    for case in (case for name in given.only.split(",") for case in known[name]):
        print("| " + " | ".join((case.attack, case.of, *cells(case, given.seeds))) + " |", flush=True)


if __name__ == "__main__":
    main()
