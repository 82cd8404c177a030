"""Laws of privacy attacks, which read a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fedarena import goals
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.inference import Inference
from fedarena.contracts.view import View, seal
from fedarena.core.global_generators import generators_of
from fedarena.core.registry import lent
from fedarena.core.rng import Rng
from fedarena.core.threat import FORMS, NotApplicable
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.goal import Choices
from fedarena.goals.prepared import OpenRecord
from fedarena.problem.spec import usual_problem
from fedarena.runs import trial
from fedarena.testing.law import LawBroken, LawIdle, Method, law, once, require
from fedarena.testing.same import copied, same, tensors_in

ROUNDS = "40"
"""Of the undefended run that an attack reads."""


def reads(method: Method) -> bool:
    """Whether an attack reads a run."""
    return method.is_a(Inference)


privacy_law = law("attack", concerns=reads)


@contextmanager
def known(method: Method) -> Iterator[None]:
    """The method is in the registry, in place of another one of its name, and is run in this process."""
    with lent(method.card):
        yield


@once
def opened(method: Method, seed: int = 0) -> list[OpenRecord]:
    """What the attack is given of an undefended run, as each party of the attack's goal. Raises LawIdle."""
    attack = MethodSpec(method.card.name, method.options)
    spec = GroupSpec(
        usual_problem({}, {"training": {"rounds": ROUNDS}}, [method.card]),
        defense=MethodSpec(BASELINE),
        attack=attack,
        threats=(),
        seed=seed,
    )
    with known(method):
        goal = goals.of_attack(attack)
        choices = Choices(parties=(), forms=FORMS, knows=())
        threats = goal.undefended(goal.threats(attack, choices))
        prepared = trial.prepare(replace(spec, threats=tuple(threats)))
    found = list({one.threat.party: one for one in reversed(prepared) if isinstance(one, OpenRecord)}.values())
    failed = [one.record for one in prepared if one.record["status"] == "failed"]
    if failed:
        raise LawBroken(f"it fails before it is run: {failed[0]['reason']}", "mend that line")
    if not found:
        reasons = {str(one.record["reason"]) for one in prepared}
        raise LawIdle(f"an undefended run of {ROUNDS} rounds gives it nothing: {'; '.join(sorted(reasons))}")
    return found


def answer(method: Method, view: View) -> tuple[Any, bool]:
    """What the attack makes of a copy of a view, and whether it leaves that as it was."""
    made: Inference = method.target(method.options)
    copy, rng = seal(view), Rng(0)
    before = copied(tensors_in(copy))
    with generators_of(rng):
        given = made.run(copy, rng, lambda share, text: None)
    return made.taken(given, view), same(before, tensors_in(copy))


@once
def answered(method: Method) -> list[tuple[OpenRecord, Any, bool]]:
    """What the attack is given of an undefended run, and what it makes of that (`answer`)."""
    return [(one, *answer(method, one.challenge.view)) for one in opened(method)]


@privacy_law
def answers_are_judged(method: Method) -> None:
    """On an undefended run the answers have the form that the attack's goal judges."""
    with known(method):
        for one in opened(method):
            record, _ = trial.attack(one)
            whose = f"as the {one.threat.party} ({one.threat.form})"
            require(
                record["status"] != "failed",
                f"{whose}: {record['reason']}",
                "answer as `fedarena.contracts.inference` says",
            )


@privacy_law
def seed_decides(method: Method) -> None:
    """The same view and the same random stream give the same answer."""
    for one, first, _ in answered(method):
        again, _ = answer(method, one.challenge.view)
        figure = f"as the {one.threat.party} two answers to one view differ"
        require(same(first, again), figure, "draw from the given rng alone")


@privacy_law
def view_stays(method: Method) -> None:
    """The attack does not change its view in place."""
    for one, _, stayed in answered(method):
        require(stayed, f"as the {one.threat.party} it changed a tensor of its view", "work on copies")


@privacy_law
def attack_reads(method: Method) -> None:
    """What other clients sent, put in place of what was seen, gives another answer."""
    others = opened(method, seed=1)
    for (one, first, _), other in zip(answered(method), others, strict=True):
        view = one.challenge.view
        if isinstance(first, NotApplicable):
            continue
        if not same(first, answer(method, with_what_others_sent(view, other.challenge.view))[0]):
            return
    raise LawBroken("the answer is the same whatever was sent", "read `view.observations`, or what the goal gives")


def with_what_others_sent(view: View, other: View) -> View:
    """The view with all that was seen in another federation, and its own candidates, samples and simulators."""
    seen = tuple(
        replace(
            mine,
            target=theirs.target,
            estimate=theirs.estimate,
            output_gradient=theirs.output_gradient,
            left=theirs.left,
        )
        for mine, theirs in zip(view.observations, other.observations, strict=False)
    )
    return replace(view, observations=seen, disclosures=other.disclosures, model=other.model)
