"""What `gpu.py` measures: each part gives its results one after the other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from gpu_tools import Place, Result, Results, Settings, apart, rate
from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, find_device, flatten
from fedarena.federation.adversary import NoAdversary
from fedarena.federation.client_memory import PeakMemory
from fedarena.federation.one_round import Federation, play, sample_clients
from fedarena.problem.client_steps import loop, stacked, vmapped
from fedarena.problem.client_steps.chain import chain_of
from fedarena.problem.client_steps.chunk import clients_at_once
from fedarena.problem.problem import Problem
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

CLIENTS, PARTICIPANTS, BATCH, LR, CLASSES, SHAPE = 100, 10, 32, 0.05, 10, (3, 32, 32)
NETWORKS = ("resnet", "cnn-two-stage", "mlp")
"""ResNet-20 (without normalisation), a CNN with group norms, and an MLP 3072-200-200-10."""


def images(settings: Settings) -> tuple[Tensor, Tensor, str]:
    """Images as stored, their classes, and which they are."""
    if not settings.small:
        try:
            data = find("dataset", "cifar10").load()(settings.data)
            return torch.from_numpy(data.x_train), torch.from_numpy(data.y_train), f"{len(data.y_train)} of CIFAR-10"
        except UserError:
            pass
    n, g = BATCH * CLIENTS if settings.small else 50_000, Rng(0).torch()
    x = torch.randint(0, 256, (n, *SHAPE), generator=g, dtype=torch.uint8)
    return x, torch.randint(0, CLASSES, (n,), generator=g), f"{n} random images"


def federation(
    model: str, stored: tuple[Tensor, Tensor], device: str, participants: int, samples: int | None
) -> Problem:
    """The images dealt out to the clients, and a model at its initial parameters."""
    x, y = (t.to(find_device(device)) for t in stored)
    card = find("model", model)
    architecture = card.load()(card.parse({}))
    module = architecture.module(SHAPE, CLASSES)
    shards = torch.randperm(len(y), generator=Rng(1).torch()).to(y.device).chunk(CLIENTS)
    schedule = Schedule(
        rounds=1,
        batch_size=BATCH,
        local_epochs=1,
        local_samples=samples,
        participation=participants / CLIENTS,
        lr=LR,
    )
    init = {name: p.to(y.device) for name, p in architecture.init(module, Rng(0).torch()).items()}
    return Problem(
        task=Task(
            module.to(y.device),
            input_shape=SHAPE,
            n_classes=CLASSES,
            sizes=tuple(map(len, shards)),
            schedule=schedule,
        ),
        x=x,
        y=y,
        x_test=x[:BATCH],
        y_test=y[:BATCH],
        scale=255.0,
        shards=shards,
        init=init,
        provenance=None,  # type: ignore[arg-type]  # no record is made
        device=y.device,
    )


def engine(problem: Problem) -> Federation:
    """FedAvg on a problem, as `fedarena.federation.rounds` plays it."""
    card = find("defense", "fedavg")
    return Federation(
        defense=card.load()(card.options(), problem.task),
        problem=problem,
        rng=Rng(0),
        adversary=NoAdversary(),
        draw=lambda t, client: None,
        peak=PeakMemory(None),
    )


class Engine:
    """Plays one round after the other."""

    def __init__(self, problem: Problem) -> None:
        self.federation, self.round = engine(problem), 0
        self.state = self.federation.defense.init(problem.init, Rng(0), None)

    def __call__(self) -> Tensors:
        """The model after one more round."""
        self.state = play(self.federation, self.state, self.round).state
        self.round += 1
        return self.state.params


class PlainLoop:
    """The same as one would write it in PyTorch: a model, its optimiser, a loop over clients and batches, a mean."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.params, self.round = problem, problem.init, 0
        self.model = problem.task.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), LR)

    def __call__(self) -> Tensors:
        """The model after one more round."""
        total = {name: torch.zeros_like(p) for name, p in self.params.items()}
        clients = sample_clients(self.problem, Rng(0).child("sample", self.round))
        for client in clients:
            batches = self.problem.batch(client, Rng(0).child("batch", self.round, client))
            self.model.load_state_dict(self.params, strict=False)
            for x, y in zip(batches.x, batches.y, strict=True):
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            for name, p in self.model.named_parameters():
                total[name] += p.detach()
        self.params, self.round = {name: t / len(clients) for name, t in total.items()}, self.round + 1
        return self.params


def rounds_of(model: str) -> Callable[[Settings], Results]:
    """The part that counts a network's rounds: the engine, the plain loop, and each form of the local work alone."""

    def part(settings: Settings) -> Results:
        x, y, what = images(settings)
        for place in settings.places:
            place.enter()
            few = 1 if place.device == "cpu" and model != "mlp" else PARTICIPANTS
            problem = federation(model, (x, y), place.device, few, None)
            ours, plain = Engine(problem), PlainLoop(problem)
            near = apart(plain(), ours())
            steps = len(problem.shards[0]) // BATCH
            note = f"{what}, {steps} steps a client" + (f", from {few} client" if few < PARTICIPANTS else "")
            for form, run in (("engine", ours), ("plain loop", plain)):
                value = rate(run, place, settings.seconds, warm=False) * few / PARTICIPANTS
                yield Result(f"{model}, rounds", form, place.name, value, "a second", note)
            yield Result(f"{model}, rounds", "plain loop − engine", place.name, near, "largest difference")
            if place == settings.places[0]:
                yield from forms(model, problem, place, settings)

    return part


def forms(model: str, problem: Problem, place: Place, settings: Settings) -> Results:
    """Rounds a second of the local work in each form, without drawing batches and the server's step."""
    task, start, schedule = problem.task, problem.init, problem.task.schedule
    batches = [problem.batch(c, Rng(0).child("batch", 0, c)) for c in range(2 if settings.small else PARTICIPANTS)]
    nothing: list[Tensors] = [{}] * len(batches)
    step = engine(problem).defense.client
    known: dict[str, Callable[[], Tensors]] = {
        "loop": lambda: loop.train(loop.of_task(task, start), schedule, start, batches, {})
    }

    def in_chunks(form: Any, size: int, run: Callable[[], Tensors]) -> Callable[[], Tensors]:
        def chunked() -> Tensors:
            usual, form.clients_at_once = form.clients_at_once, lambda params: size
            try:
                return run()
            finally:
                form.clients_at_once = usual

        return chunked

    def mapped() -> Tensors:
        ups = [up for up, _ in vmapped.run(step, start, batches, nothing, nothing)]
        return {name: torch.stack([up[name] for up in ups]) for name in start}

    sizes = sorted({min(PARTICIPANTS, clients_at_once(start)), PARTICIPANTS})
    for size in sizes:
        known[f"vmap, {size} clients at once"] = in_chunks(vmapped, size, mapped)
    chain = chain_of(task.model, len(SHAPE))
    if chain is not None:
        for size in sizes:
            known[f"stacked by hand, {size} clients at once"] = in_chunks(
                stacked, size, lambda: stacked.train(chain, schedule, task.criterion, start, batches, {}, {})
            )
    expected = known["loop"]()
    for form, run in known.items():
        near = apart(run(), expected)
        value = rate(run, place, settings.seconds, warm=False) * len(batches) / PARTICIPANTS
        yield Result(f"{model}, local work of a round", form, place.name, value, "a second", f"off by {near:.0e}")


def dlg(settings: Settings) -> Results:
    """Matching gradients of many restarts, and a whole search of 64 of them."""
    from dlg import observation

    from fedarena.attacks.reconstruction.helpers.lbfgs import minimise
    from fedarena.attacks.reconstruction.helpers.matching import MatchingObjective
    from fedarena.contracts.simulators import ThroughProtocol
    from fedarena.core.options import NoOptions
    from fedarena.models.lenet_dlg import DlgLeNet

    iterations = 3 if settings.small else 50
    for place in settings.places:
        place.enter()
        shape = (1, 28, 28)
        module = DlgLeNet(NoOptions()).module(shape, CLASSES)
        task = Task(module, input_shape=shape, n_classes=CLASSES, sizes=(1,), schedule=Schedule(batch_size=1))
        seen = observation(task, Rng(0).child("victim"))
        assert isinstance(seen.simulate, ThroughProtocol)
        here = {name: t.to(place.device) for name, t in seen.target.items()}
        down = {name: t.to(place.device) for name, t in seen.simulate.down.items()}
        seen = replace(seen, target=here, simulate=replace(seen.simulate, down=down))
        objective = MatchingObjective(seen, shape=(1, *shape), classes=CLASSES, labels=None, tv=0.0)
        points = torch.randn(64, objective.pixels + CLASSES, generator=Rng(0).child("points").torch()).to(place.device)
        for restarts in (1, 8, 64):
            some, evaluate = points[:restarts], objective.evaluate
            value = restarts * rate(lambda e=evaluate, p=some: e(p), place, settings.seconds)
            yield Result(
                "dlg, lenet-dlg 28x28", f"{restarts} restarts", place.name, value, "matching gradients a second"
            )
        place.wait()
        began = time.perf_counter()
        found = minimise(objective.evaluate, points, iterations)
        place.wait()
        spent, best = time.perf_counter() - began, float(found.values.min())
        note = f"{found.evaluations} evaluations, lowest match {best:.1e}"
        yield Result(
            "dlg, lenet-dlg 28x28", f"64 restarts, {iterations} iterations", place.name, spent, "seconds", note
        )


def shadows(settings: Settings) -> Results:
    """Membership inference against FedAvg on digits: shadow models, trained one after the other."""
    from fedarena.core.threat import Threat
    from fedarena.federation import compose
    from fedarena.federation.spec import GroupSpec, MethodSpec
    from fedarena.problem.spec import ProblemSpec, usual_problem
    from fedarena.runs import trial

    count, rounds = (2, 3) if settings.small else (4, 60)

    def attacked(problem: ProblemSpec, place: Place, count: int) -> tuple[Any, float, float]:
        """The record, and the seconds of the training and of the attack."""
        attack = compose.parse_attack("membership-inference", {"shadows": str(count)})
        spec = GroupSpec(
            problem,
            defense=MethodSpec("fedavg"),
            attack=attack,
            threats=(Threat("server", "paper"),),
            seed=0,
            device=place.device,
        )
        began = time.perf_counter()
        prepared = trial.prepare(spec)
        trained = time.perf_counter()
        record, _ = trial.attack(prepared[0])
        if record["status"] != "ok":
            raise RuntimeError(f"{problem.model}: {record['status']}, {record['reason']}")
        return record, trained - began, time.perf_counter() - trained

    for model in ("mlp", "lenet-dlg"):
        given = {"dataset": "digits", "model": model, "clients": "4"}
        problem = usual_problem(given, {"training": {"rounds": str(rounds), "batch_size": "16"}})
        for place in settings.places:
            place.enter()
            attacked(replace(problem, schedule=replace(problem.schedule, rounds=1)), place, 2)  # what comes but once
            record, trained, spent = attacked(problem, place, count)
            note = f"{rounds} rounds each; AUC {record['metrics']['auc']:.3f}; the attacked run took {trained:.1f} s"
            yield Result(f"membership inference, {model}", "shadow models", place.name, count / spent, "a second", note)


def baffle(settings: Settings) -> Results:
    """Forward passes at perturbed parameters, with drawing the directions, and the drawing alone."""
    from baffle import SEED, SIGMA, work

    from fedarena.defenses.baffle import forward_passes as forwards
    from fedarena.defenses.baffle.directions import directions

    cases = (
        ("lenet-baffle", (1, 32, 32), 1, 64, 40),
        ("wrn-10-2", (3, 32, 32), 1, 64, 10),
        ("resnet", (3, 32, 32), 1, 64, 10),
        ("resnet", (3, 32, 32), 10, 32, 10),
    )
    for model, shape, clients, samples, k in cases:
        task, params, batches = work(model, shape, clients, 4 if settings.small else samples)
        n, like = flatten(params).numel(), next(iter(params.values())).dtype
        for place in settings.places:
            place.enter()
            task.model.to(place.device)
            here = {name: p.to(place.device) for name, p in params.items()}
            there = [Batch(b.x.to(place.device), b.y.to(place.device)) for b in batches]
            how = forwards.Differencing(SIGMA, "forward", like)

            def run(
                task: Task = task, w: Tensors = here, given: Sequence[Batch] = there, n: int = n, k: int = k
            ) -> Tensor:
                return forwards.differences(task, w, given, directions(SEED, n), k, how)  # noqa: B023

            def drawn(n: int = n, k: int = k, device: str = place.device) -> None:
                for z in islice(directions(SEED, n), k):
                    z.to(device)

            what = f"baffle, {model}, {clients} x {batches[0].y.numel()} samples"
            for form, of in (("forward passes", run), ("directions drawn alone", drawn)):
                value = k * rate(of, place, settings.seconds / 2)
                yield Result(what, form, place.name, value, "directions a second")


def agreement(settings: Settings) -> Results:
    """How far one round's uploads and the model after five rounds differ between devices and settings."""
    x, y, what = images(settings)
    cores = len(os.sched_getaffinity(0))
    rounds, participants, samples = (2, 1, BATCH) if settings.small else (5, 4, 4 * BATCH)

    def outcome(model: str, place: Place, double: bool = False, tf32: bool = False) -> tuple[Tensors, Tensors]:
        """The uploads of the first round, and the model after the last."""
        place.enter()
        problem = federation(model, (x, y), place.device, participants, samples)
        if double:
            problem = replace(problem, init={name: p.double() for name, p in problem.init.items()})
        with rounding(tf32):
            first = engine(problem)
            state = first.defense.init(problem.init, Rng(0), None)
            ups: Tensors = {}
            for t in range(rounds):
                result = play(first, state, t, write=t == 0)
                ups, state = ups if result.transcript is None else result.transcript.ups, result.state
        return ups, state.params

    for model in NETWORKS:
        cpu = outcome(model, Place("cpu", cores))
        exact = outcome(model, Place("cpu", cores), double=True)
        compared = {"CPU, float64": ("CPU", cpu, exact), "CPU, one thread": ("CPU", outcome(model, Place("cpu")), cpu)}
        if settings.device == "cuda":
            gpu = outcome(model, Place("cuda"))
            rounded = outcome(model, Place("cuda"), tf32=True)
            compared |= {
                "CPU, float32": ("GPU", gpu, cpu),
                "CPU, float64 ": ("GPU", gpu, exact),
                "CPU, float32 ": ("GPU, TF32", rounded, cpu),
                "GPU again": ("GPU", outcome(model, Place("cuda")), gpu),
            }
        for other, (where, one, two) in compared.items():
            for i, which in enumerate(("uploads of a round", f"model after {rounds} rounds")):
                text = f"{model}, {which}"
                yield Result(text, f"against {other.strip()}", where, apart(one[i], two[i]), "largest difference", what)


@contextlib.contextmanager
def rounding(tf32: bool) -> Iterator[None]:
    """Products of float32 are rounded to TF32 meanwhile, or not."""

    def allow(whether: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            torch.backends.cuda.matmul.allow_tf32 = whether
            torch.backends.cudnn.allow_tf32 = whether

    allow(tf32)
    try:
        yield
    finally:
        allow(False)


def workers(settings: Settings) -> Results:
    """`bench run` with several workers that share the card: time, memory of the card, and whether results agree."""
    seeds, some = ((0, 1), (1, 2)) if settings.small else (range(8), (1, 4, 8))
    what = f"bench run, dlg on digits, {len(seeds)} seeds"
    words = [sys.executable, "-m", "fedarena", "run", "--defense=fedavg", "--attack=dlg", "--model=lenet-dlg"]
    words += [
        "--dataset=digits",
        f"--seeds={','.join(map(str, seeds))}",
        "--rounds=6",
        "--json",
        "--quiet",
        f"--device={settings.device}",
    ]
    words += ["--set=attack.window=4", "--set=attack.victims=1"]
    words += ["--set=attack.restarts=2", f"--set=attack.iterations={2 if settings.small else 40}", "--party=server"]
    first: list[Any] | None = None
    for jobs in some:
        with tempfile.TemporaryDirectory() as folder, used_memory(settings.device == "cuda") as used:
            began = time.perf_counter()
            done = subprocess.run([*words, f"--jobs={jobs}", f"--out={folder}"], capture_output=True, text=True)
            spent = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"{jobs} workers: {(done.stderr or done.stdout).strip()[-300:]}")
        found = [
            [r["status"], r["metrics"], r["utility"]["clean_accuracy"]] for r in json.loads(done.stdout)["records"]
        ]
        first = first or found
        note = "the same results" if found == first else "OTHER RESULTS than with one worker"
        where = settings.places[0].name
        form = f"{jobs} worker{'s' * (jobs > 1)}"
        yield Result(
            "bench run, dlg on digits, 8 seeds", form, where, spent, "seconds", f"{note}; {len(found)} records"
        )
        if used:
            yield Result(what, form, where, max(used) / 2**30, "GiB of the card at once")


@contextlib.contextmanager
def used_memory(there: bool) -> Iterator[list[int]]:
    """Bytes of the card that are in use, twice a second, above those at the beginning."""
    found: list[int] = []
    if not there:
        yield found
        return
    before, ended = torch.cuda.mem_get_info()[0], threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            found.append(before - torch.cuda.mem_get_info()[0])

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield found
    finally:
        ended.set()
        watch.join()


PARTS: dict[str, tuple[Callable[[Settings], Results], float]] = {
    "mlp": (rounds_of("mlp"), 60),
    "cnn-two-stage": (rounds_of("cnn-two-stage"), 90),
    "resnet": (rounds_of("resnet"), 120),
    "dlg": (dlg, 60),
    "shadows": (shadows, 60),
    "baffle": (baffle, 60),
    "agreement": (agreement, 120),
    "workers": (workers, 120),
}
"""Name → the part, and the most seconds that it may take."""
