"""The law of devices: a method gives on a GPU what it gives on a CPU.

Where there is no GPU a device is pretended that refuses to mix tensors of both (`fedarena.testing.pretended_cuda`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from fedarena.attacks.estimate.cards.gradient_estimate import CARD as READER
from fedarena.contracts.aggregator import Wrapper
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.poisoning import Around
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.registry import lent
from fedarena.defenses.aggregators.cards.median import CARD as INNER
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.spec import usual_problem
from fedarena.records.schema import Record
from fedarena.runs import pairing, trial
from fedarena.testing.federations import Backwards
from fedarena.testing.law import LawIdle, Method, law, require
from fedarena.testing.poisoning_laws import NextLabel, poisons
from fedarena.testing.pretended_cuda import pretend_cuda
from fedarena.testing.privacy_laws import known

TOLERANCE: Mapping[str, tuple[float, float]] = {
    "shares": (0.0, 0.05),
    "distances": (0.02, 0.01),
    "decibels": (0.0, 0.5),
    "grey levels": (0.0, 8.0),
}
"""Kind of quantity → how far a GPU's may lie from the CPU's, relatively and absolutely; the larger one counts."""
NAMED = (
    ("decibels", re.compile("psnr")),
    ("distances", re.compile("l2|loss|error|mse|match|layer|digits|predicted|best|plain|steps|curve")),
    ("grey levels", re.compile("originals|guesses")),
)
"""Kind → names of its quantities. The others are shares."""
UNSTEADY = re.compile("_low$|_high$|seconds")
"""Names of quantities that are not compared."""
ROUNDING = (1e-6, 1e-5)
"""The tolerance on a pretended device: the order of a product's sums may depend on where in memory its factors lie."""
REMEDY = "put a tensor on the device of those that it is made from: x.new_zeros(n), device=x.device"

BACKWARDS = Card(name="law-backwards", kind="attack", title="Uploads backwards", target=Backwards)
NEXT_LABEL = Card(name="law-next-label", kind="attack", title="Wrong labels, and uploads backwards", target=NextLabel)

Measure = Callable[[str], Sequence[Record]]
"""Device → the records of a pairing on it."""


@contextmanager
def device() -> Iterator[None]:
    """There is a CUDA device meanwhile: a real one, or else a pretended one."""
    if not torch.cuda.is_available():
        with pretend_cuda():
            yield
        return
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=False)  # which a device asks for, of the CPU too


@law("defense", "aggregator", "secure", "attack")
def devices_agree(method: Method) -> None:
    """Three rounds on a GPU give the results of a CPU; without a GPU, nothing mixes tensors of both devices."""
    with ExitStack() as stack:
        for card in (method.card, BACKWARDS, NEXT_LABEL):
            stack.enter_context(known(method) if card is method.card else lent(card))
        same_on_both(lambda place: _records(_plan(method, place)))


def _plan(method: Method, place: str) -> Sequence[GroupSpec]:
    defense, attack = _opponents(method)
    poisoned = attack.name != READER.name and not (method.card.kind == "attack" and not poisons(method))
    given = {"clients": "12", "corrupted": "2"} if poisoned else {}
    problem = usual_problem(given, {"training": {"rounds": "3"}}, [method.card])
    wanted = pairing.Wanted(knows=["own"] if poisoned and method.card.kind != "attack" else None)
    try:
        groups = pairing.plan(
            pairing.Pairing(defense, attack=attack, problem=problem, seeds=(0,), device=place), wanted
        )
    except UserError as error:
        raise LawIdle(f"three rounds cannot be planned: {error}") from None
    return [group for group in groups if group.attack is not None and group.defense == defense]


def _opponents(method: Method) -> tuple[MethodSpec, MethodSpec]:
    """(defense, attack) of the pairing in which a method is tried."""
    spec, kind = MethodSpec(method.card.name, method.options), method.card.kind
    if kind == "attack":
        around = poisons(method) and issubclass(method.target, Around)
        inner = (MethodSpec(NEXT_LABEL.name),) if around else ()
        return MethodSpec(BASELINE), MethodSpec(spec.name, spec.options, inner)
    if kind == "aggregator":
        inner = (MethodSpec(INNER.name, INNER.parse({})),) if issubclass(method.target, Wrapper) else ()
        return MethodSpec(BASELINE, rest=(spec, *inner)), MethodSpec(BACKWARDS.name)
    reader = MethodSpec(READER.name, READER.parse({"rounds": "3"}))
    return (spec if kind == "defense" else MethodSpec(BASELINE, rest=(spec,))), reader


def same_on_both(measure: Measure, chaotic: bool = False) -> None:
    """Raises LawBroken where records on a GPU differ from those on a CPU, or none of them is a result.

    Args:
        chaotic: whether the attack's answers depend on the last digits, so that a real GPU's are not compared.
    """
    here = measure("cpu")
    with device():
        there = measure("cuda")
    tried = {str(record["reason"]) for record in here if record["reason"]}
    if not any(record["status"] == "ok" and record["attack"] != "none" for record in here):
        raise LawIdle(f"the run gives no result: {'; '.join(sorted(tried))}")
    real = torch.cuda.is_available()
    for one, other in zip(there, here, strict=True):
        for what in ("party", "form", "attacker_knowledge", "reading", "status"):
            a, b = one.get(what), other.get(what)
            told = one["reason"] if what == "status" else ""
            require(a == b, f"{what} is {a} on a GPU and {b} on a CPU {told}".strip(), REMEDY)
        words = _words if real else str
        a, b = words(one["reason"]), words(other["reason"])
        require(a == b, f"a GPU says '{a}' where a CPU says '{b}'", REMEDY)
        exact = None if real else ROUNDING
        near(one["utility"], other["utility"], exact=exact)
        if not (real and chaotic):
            near([one["metrics"], one["scores"]], [other["metrics"], other["scores"]], exact=exact)


def _records(groups: Sequence[GroupSpec]) -> list[Record]:
    """The records without what the runs are compared with, which takes longest."""
    return [trial.attack(prepared)[0] for group in groups for prepared in trial.prepare(group)]


def near(there: Any, here: Any, name: str = "", exact: tuple[float, float] | None = None) -> None:
    """Raises LawBroken where a GPU's value is not near a CPU's.

    Args:
        exact: the tolerance of all quantities; None: `TOLERANCE` for its kind, and some are left out (`UNSTEADY`).
    """
    if exact is None and UNSTEADY.search(name):
        return
    if isinstance(here, Mapping):
        require(list(there) == list(here), f"{name or 'a record'} has {list(there)} on a GPU", REMEDY)
        for key in here:
            near(there[key], here[key], str(key), exact)
    elif isinstance(here, list | tuple):
        require(len(there) == len(here), f"{name} has {len(there)} values on a GPU, {len(here)} on a CPU", REMEDY)
        for one, other in zip(there, here, strict=True):
            near(one, other, name, exact)
    elif isinstance(here, float | int) and not isinstance(here, bool):
        kind = next((kind for kind, names in NAMED if names.search(name)), "shares")
        relative, absolute = TOLERANCE[kind] if exact is None else exact
        close = math.isclose(there, here, rel_tol=relative, abs_tol=absolute) or (there != there and here != here)
        require(close, f"{name} is {there:.6g} on a GPU and {here:.6g} on a CPU", REMEDY)
    else:
        require(there == here, f"{name} is {there} on a GPU and {here} on a CPU", REMEDY)


def _words(text: str | None) -> str:
    """A text without its numbers."""
    return re.sub(r"[\d.]+(e[-+]?\d+)?", "#", text or "")
