"""Pairings, tables and tensors on another device: nothing is mixed with the CPU, and nothing is computed otherwise.

There need be no such device. What pretends to be one computes as the CPU does, so that results must be equal to the
last bit, and refuses what a real one refuses (`fedarena.testing.pretended_cuda`).

Where there is a GPU, the same is computed on it. A GPU adds in another order, which changes the last digit of every
sum. TF32, which would change the fourth digit, is off, and sums are in a fixed order where PyTorch has one. Attacks and
trainings are cut to a few iterations and rounds, in which the last digits do not grow to anything. The records then
agree in every word, and in numbers up to `fedarena.testing.device_laws.TOLERANCE`:

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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from fedarena.cli import main, read_args, run
from fedarena.core.rng import Rng
from fedarena.core.tensors import find_device, reduce_tensor
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.spec import usual_problem
from fedarena.records.schema import Record
from fedarena.reproduce.baffle import common as baffle
from fedarena.reproduce.dbcl import figure3 as dbcl_figure3
from fedarena.reproduce.dbcl.figure3 import CASES as FIGURE3
from fedarena.reproduce.inference import inversion_images
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import precision as pbpfl_precision
from fedarena.reproduce.pbpfl import table1 as pbpfl_table1
from fedarena.runs import trial
from fedarena.runs.engine import run_groups
from fedarena.testing.device_laws import device, near, same_on_both
from fedarena.testing.pretended_cuda import MIXED, pretend_cuda

REAL = torch.cuda.is_available()
"""Whether there is a device, so that none has to be pretended."""
on_a_gpu = pytest.mark.skipif(not REAL, reason="there is no GPU")

CHAOTIC = {"property-inference"}
"""Attacks whose answers depend on the last digits."""

POISONED = ("--clients=12", "--corrupted=2")
ON_BOTH: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    # name: (defense, attack, options)
    "reconstruction": ("dbcl", "dlg", ("--set=dlg.iterations=5", "--set=dlg.restarts=1", "--set=dlg.victims=1")),
    "membership": ("baffle", "marginal-membership", ("--set=attack.rounds=3", "--set=baffle.directions=20")),
    "property": (
        *("fedavg", "property-inference"),
        ("--set=attack.rounds=2", "--set=attack.round_batches=3", "--set=attack.classifier=ridge"),
    ),
    "rule": ("krum", "sign-flip", POISONED),
    "steer": ("baffle", "steer", (*POISONED, "--set=baffle.directions=20")),
    "bank": ("two-stage", "bank", (*POISONED, "--set=attack.turn=0.3")),
    "rank-map": ("two-stage", "rank-map+sign-flip", POISONED),
    "mimic": ("krum", "mimic", (*POISONED, "--set=attack.warmup=1")),
    "optimized": ("krum", "optimized", (*POISONED, "--set=attack.against=krum")),
}
"""Pairings that the law of devices, which tries each method on or with FedAvg for three rounds, does not play."""


@pytest.fixture(autouse=True)
def _pictures_are_not_drawn(undrawn: None) -> None:
    """They are composed, which a tensor that is left on the device would refuse."""


@pytest.fixture(autouse=True)
def _parties_alone_take_few_steps(briefly_alone: None) -> None:
    """They take every operator that they need all the same."""


def silent(share: float, text: str = "") -> None:
    pass


@pytest.mark.parametrize("pair", ON_BOTH)
def test_a_command_gives_the_same_records_on_both(pair: str) -> None:
    """With all that its runs are compared with. `test_laws.py` holds each method to the law of devices."""
    defense, attack, options = ON_BOTH[pair]
    words = ["run", f"--defense={defense}", f"--attack={attack}", "--rounds=3", *options]

    def records(place: str) -> list[Record]:
        _, groups = run.plan(read_args([*words, f"--device={place}"]))
        return [record for result in run_groups(groups, 1) for record in result.records]

    same_on_both(records, chaotic=attack in CHAOTIC)


LENET = baffle.Experiment("digits", model="lenet-baffle", title="K = 5", paper=0.5, k=5, rounds=1)
QUICK: Mapping[str, Callable[[Machine], list[dict[str, Any]]]] = {
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
        near(there, here)
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
    options = ("iterations=5", "restarts=1", "victims=1", "window=3")
    command += ["--device=cuda", *(f"--set=attack.{option}" for option in options)]
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
