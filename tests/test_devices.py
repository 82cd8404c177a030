"""Every method on a device of its own: nothing is mixed with the CPU, and nothing is computed otherwise.

There need be no such device. What pretends to be one computes as the CPU does, so that results must be equal to the
last bit, and refuses what a real one refuses (`pretend_cuda`).

Where there is a GPU, the same is computed on it. A GPU adds in another order, which changes the last digit of every
sum. TF32, which would change the fourth digit, is off, and sums are in a fixed order where PyTorch has one. Attacks and
trainings are cut to a few iterations and rounds, in which the last digits do not grow to anything. The records then
agree in every word, and in numbers up to `TOLERANCE`:

    shares       accuracies, AUCs, leaks, cosines, similarities       0.05: one AUC of 8 and 8 candidates moves by 1/64
    distances    losses, errors, relative lengths                     2 % or 0.01, whichever is more
    decibels     PSNR                                                 0.5 dB
    grey levels  pixels of pictures, 0 to 255                         8

How much there is to spare was tried on the CPU, with every product, sum and convolution off by up to two units in the
last place. No share moved by more than 0.016, no loss by 0.001, no relative length by more than 0.4 % or 0.0001, and no
PSNR by more than 0.001 dB. Two things cannot be near and are not compared: the ends of intervals, and the answers of
property inference, which tells six updates of nearly equal models apart by their last digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from helpers.pretend_cuda import MIXED, pretend_cuda

from fedarena.cli import main
from fedarena.contracts.aggregator import Wrapper
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Around
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import find_device, reduce_tensor
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.baffle import common as baffle
from fedarena.reproduce.dbcl import figure3 as dbcl_figure3
from fedarena.reproduce.dbcl.figure3 import CASES as FIGURE3
from fedarena.reproduce.inference import inversion_images
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import precision as pbpfl_precision
from fedarena.reproduce.pbpfl import table1 as pbpfl_table1
from fedarena.runs import trial

REAL = torch.cuda.is_available()
"""Whether there is a device, so that none has to be pretended."""
on_a_gpu = pytest.mark.skipif(not REAL, reason="there is no GPU")

TOLERANCE: Mapping[str, tuple[float, float]] = {
    "shares": (0.0, 0.05),
    "distances": (0.02, 0.01),
    "decibels": (0.0, 0.5),
    "grey levels": (0.0, 8.0),
}
"""Kind of quantity → how far a GPU's may lie from the CPU's, relatively and absolutely; the larger one counts."""
KINDS = (
    ("decibels", re.compile("psnr")),
    ("distances", re.compile("l2|loss|error|mse|match|layer|digits|predicted|best|plain|steps|curve")),
    ("grey levels", re.compile("originals|guesses")),
)
"""Kind → names of its quantities. The others are shares."""
UNSTEADY = re.compile("_low$|_high$|seconds")
"""Names of quantities that are not compared."""
CHAOTIC = {"property-inference"}
"""Attacks whose answers depend on the last digits."""

NAMES = {kind: registry.registries()[kind].names() for kind in ("defense", "aggregator", "secure", "attack")}
INFERENCE = [n for n in NAMES["attack"] if issubclass(registry.find("attack", n).load(), Inference)]
POISONING = [n for n in NAMES["attack"] if n not in INFERENCE]
SHORT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("dlg", "idlg"), ("attack.iterations=5", "attack.restarts=1", "attack.victims=1", "attack.window=3")
    ),
    "inverting-gradients": ("attack.iterations=5", "attack.restarts=1", "attack.victims=1"),
    "a3fl": ("attack.steps=5", "attack.alone=2", "attack.unlearning=1"),
    "analytic": ("attack.victims=1", "model.widths=16"),
    "model-inversion": ("attack.iterations=3", "attack.directions=2", "model.widths=16"),
    "property-inference": ("attack.rounds=2", "attack.round_batches=3", "attack.classifier=ridge", "model.widths=16"),
    "gradient-estimate": ("attack.rounds=3",),
    "joint-membership": ("attack.rounds=3",),
    "marginal-membership": ("attack.rounds=3", "baffle.directions=20"),
    "membership-inference": ("attack.shadows=2", "model.widths=16"),
    "baffle": ("baffle.directions=20",),
    "fedzo": ("fedzo.directions=5",),
}
"""Attack or defense → options that make it quick."""
AGAINST = {"steer": "baffle", "bank": "two-stage", "rank-map": "two-stage", "marginal-membership": "baffle"}
"""Attack → the defense that it is made against, where that is one."""

Told = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _pictures_are_not_drawn(undrawn: None) -> None:
    """They are composed, which a tensor that is left on the device would refuse."""


@pytest.fixture(autouse=True)
def _parties_alone_take_few_steps(briefly_alone: None) -> None:
    """They take every operator that they need all the same."""


@contextmanager
def device() -> Iterator[None]:
    """There is a CUDA device meanwhile: a real one, or else a pretended one."""
    if not REAL:
        with pretend_cuda():
            yield
        return
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=False)  # which a device asks for, of the CPU too


def assert_near(there: Any, here: Any, name: str = "") -> None:
    """What a GPU gave is what the CPU gave, but for the tolerance of its kind."""
    if UNSTEADY.search(name):
        return
    if isinstance(here, Mapping):
        assert list(there) == list(here), name
        for key in here:
            assert_near(there[key], here[key], str(key))
    elif isinstance(here, list | tuple):
        assert len(there) == len(here), name
        for one, other in zip(there, here, strict=True):
            assert_near(one, other, name)
    elif isinstance(here, float | int) and not isinstance(here, bool):
        kind = next((kind for kind, names in KINDS if names.search(name)), "shares")
        relative, absolute = TOLERANCE[kind]
        assert there == pytest.approx(here, rel=relative, abs=absolute, nan_ok=True), name
    else:
        assert there == here, name


def words_of(text: str | None) -> str:
    """A text without its numbers."""
    return re.sub(r"[\d.]+(e[-+]?\d+)?", "#", text or "")


def silent(share: float, text: str = "") -> None:
    pass


@pytest.mark.parametrize("attack", INFERENCE)
@pytest.mark.usefixtures("quick_judge")
def test_inference_attacks(attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"--set={option}" for option in SHORT.get(attack, ())]
    assert_same_on_both(AGAINST.get(attack, "fedavg"), attack, options, tmp_path, capsys)


@pytest.mark.parametrize("defense", [*NAMES["defense"], *(f"fedavg+{name}" for name in NAMES["secure"])])
def test_defenses(defense: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"--set={option}" for option in (*SHORT["gradient-estimate"], *SHORT.get(defense, ()))]
    assert_same_on_both(defense, "gradient-estimate", options, tmp_path, capsys)


@pytest.mark.parametrize("rule", NAMES["aggregator"])
def test_rules(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    defense = f"{rule}+median" if issubclass(registry.find("aggregator", rule).load(), Wrapper) else rule
    assert_same_on_both(defense, "sign-flip", ["--clients=12", "--corrupted=2", "--knows=own"], tmp_path, capsys)


@pytest.mark.parametrize("attack", POISONING)
def test_poisoning_attacks(attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = "label-flip" if attack in ("model-replacement", "neurotoxin") else "sign-flip"
    whole = f"{attack}+{inside}" if issubclass(registry.find("attack", attack).load(), Around) else attack
    options = [f"--set={option}" for option in SHORT.get(attack, ())]
    assert_same_on_both(
        AGAINST.get(attack, "krum"), whole, ["--clients=12", "--corrupted=2", *options], tmp_path, capsys
    )


def assert_same_on_both(
    defense: str, attack: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command gives the same cells with and without --device cuda, and at least one of them is a result."""
    command = ["run", f"--defense={defense}", f"--attack={attack}", "--rounds=3", "--jobs=1", "--json", "--quiet"]

    def cells(device: str) -> Told:
        code = main([*command, *words, f"--out={folder / device}", f"--device={device}"])
        done = capsys.readouterr()
        assert code == 0, done.err + done.out[:1000]
        found: Told = json.loads(done.out)["records"]
        assert {record["problem"]["device"] for record in found} == {device}
        return found

    here = cells("cpu")
    with device():
        there = cells("cuda")
    assert "ok" in {record["status"] for record in here}
    for what in ("party", "form", "attacker_knowledge", "reading", "status"):
        assert [record.get(what) for record in there] == [record.get(what) for record in here], what
    if REAL:
        assert [words_of(r["reason"]) for r in there] == [words_of(r["reason"]) for r in here]
        for one, other in zip(there, here, strict=True):
            assert_near(one["utility"], other["utility"])
            if attack not in CHAOTIC:
                assert_near([one["metrics"], one["scores"]], [other["metrics"], other["scores"]])
        return
    for what in ("reason", "utility"):
        assert [record.get(what) for record in there] == [record.get(what) for record in here], what
    # Not to the last bit: the order of a product's sums may depend on where in memory its factors lie.
    for one, other in zip(there, here, strict=True):
        assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-6, abs=1e-5)


LENET = baffle.Experiment("digits", model="lenet-baffle", title="K = 5", paper=0.5, k=5, rounds=1)
QUICK: Mapping[str, Callable[[Machine], Told]] = {
    "baffle, in law": lambda machine: baffle.measure(LENET, machine, 0, silent),
    "baffle, real": lambda machine: baffle.measure(replace(LENET, simulated=False), machine, 0, silent),
    "backpropagation": lambda machine: baffle.measure(replace(LENET, k=None), machine, 0, silent),
    "dbcl/figure3": lambda machine: dbcl_figure3.measure(
        replace(FIGURE3[0], dataset="digits", widths="16", schedule=replace(FIGURE3[0].schedule, rounds=4)),
        *(machine, 0, silent),
    ),
    "inversion/images": lambda machine: inversion_images.measure(
        inversion_images.Case(
            title="digits",
            dataset="digits",
            model="lenet-dlg",
            victims=1,
            attack=inversion_images.Options(iterations=5, restarts=1),
        ),
        *(machine, 0, silent),
    ),
    "pbpfl/precision": lambda machine: pbpfl_precision.measure(
        *(pbpfl_precision.NETWORKS[0], machine, 0, silent),
        (pbpfl_precision.Series("gamma", "gamma_scale", (10.0,), ()),),
    ),
    "pbpfl/table1": lambda machine: pbpfl_table1.measure(
        replace(pbpfl_table1.FEDERATIONS[0], data="breast-cancer", epochs=1, batch=64), machine, 0, silent
    ),
}
"""What tables of every kind are made of, in small."""


@pytest.mark.parametrize("table", QUICK)
def test_tables(table: str) -> None:
    here = QUICK[table](Machine())
    with device():
        there = QUICK[table](Machine(device="cuda"))
    if REAL:
        assert_near(there, here)
        return
    timed = {"cpu_seconds", "seconds"}
    assert [{k: v for k, v in r.items() if k not in timed} for r in there] == [
        {k: v for k, v in r.items() if k not in timed} for r in here
    ]


def test_an_attack_computes_as_the_training_did_in_any_process() -> None:
    """A worker that has not trained has PyTorch's own settings, in which convolutions round their inputs."""
    cards = compose.attack_cards("dlg")
    group = GroupSpec(
        problem=usual_problem({}, {"training": {"rounds": "2"}}, cards),
        defense=compose.parse_defense("fedavg"),
        attack=compose.parse_attack("dlg", {"iterations": "1", "restarts": "1", "victims": "1", "window": "2"}),
        threats=(Threat("server", "paper"),),
        seed=0,
        device="cuda",
    )
    with device():
        (prepared,) = trial.prepare(group)
        torch.backends.cudnn.allow_tf32 = True
        torch.use_deterministic_algorithms(mode=False)
        record, _ = trial.attack(prepared)
        assert record["status"] == "ok", record["reason"]
        assert not torch.backends.cudnn.allow_tf32
        assert torch.are_deterministic_algorithms_enabled()


def test_a_tensor_that_crosses_between_processes_stays_on_its_device() -> None:
    with device():
        whole = torch.arange(12.0, device="cuda").reshape(3, 4)
        for one in (whole, whole[1], whole.T, whole[0].half()):
            make, given = reduce_tensor(one)[:2]
            again = make(*given)
            assert again.is_cuda
            assert again.stride() == one.stride()
            assert again.tolist() == one.tolist()


@on_a_gpu
def test_products_keep_the_digits_of_their_type() -> None:
    with device():
        place = find_device("cuda")
        a, b = (torch.randn(64, 512, generator=Rng(0).child(i).torch(), dtype=torch.float64) for i in (0, 1))
        images = a.reshape(8, 16, 16, 16), b.reshape(128, 16, 4, 4)
        for function, x, y in ((torch.matmul, a, b.T), (torch.nn.functional.conv2d, *images)):
            exact = function(x, y)
            off = (function(x.float().to(place), y.float().to(place)).cpu() - exact).abs().max() / exact.abs().max()
            assert float(off) < 1e-5, function.__name__  # with TF32 some 3e-4


@on_a_gpu
def test_a_gpu_repeats_itself_with_any_number_of_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--defense=fedavg", "--attack=dlg", "--rounds=4", "--seeds=0,1", "--json", "--quiet"]
    command += ["--device=cuda", *(f"--set={option}" for option in SHORT["dlg"])]
    found = []
    with device():
        for jobs in (1, 1, 2):
            code = main([*command, f"--jobs={jobs}", f"--out={tmp_path / str(len(found))}"])
            done = capsys.readouterr()
            assert code == 0, done.err
            found.append([[r[k] for k in ("status", "metrics", "utility")] for r in json.loads(done.out)["records"]])
    assert found[0] == found[1] == found[2]


@pytest.mark.skipif(REAL, reason="here is a device")
def test_the_pretended_device_refuses_what_a_real_one_refuses() -> None:
    with pretend_cuda():
        a, b = torch.ones(3, device="cuda"), torch.ones(5, 3)
        assert str((2 * a + a.sum().cpu()).device) == "cuda"
        assert torch.zeros_like(a).is_cuda
        assert not a.cpu().is_cuda
        assert a[torch.tensor([0, 2])].is_cuda
        for mixed in (lambda: a + b, lambda: b[:, torch.tensor([0]).to("cuda")], lambda: torch.cat([a, b[0]])):
            with pytest.raises(RuntimeError, match=MIXED):
                mixed()
        with pytest.raises(RuntimeError, match=MIXED):
            torch.func.vmap(torch.func.grad(lambda w, x: (w * x).sum()), (None, 0))(a, b)
        for read in (a.numpy, lambda: numpy.asarray(a), lambda: numpy.stack([a, a])):
            with pytest.raises(TypeError, match="numpy"):
                read()
        with pytest.raises(RuntimeError, match="not implemented"):
            torch.tensordot(a.long(), a.long()[:, None], dims=1)
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(2, generator=torch.Generator(), device="cuda")
        moved = torch.nn.Linear(3, 2).to("cuda")
        assert moved(a).is_cuda
        with pytest.raises(RuntimeError, match=MIXED):
            moved(b)
    assert not torch.cuda.is_available()
