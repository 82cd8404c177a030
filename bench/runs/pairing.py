"""The groups of trials for one defense against one attack, beside no defense; and whether they can run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fedarena import goals
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng, root
from fedarena.core.tensors import rows
from fedarena.core.threat import FORMS, KNOWLEDGE
from fedarena.federation import compose, rounds
from fedarena.federation.spec import GroupSpec, MethodSpec, TranscriptFolder
from fedarena.goals.goal import Choices, Goal
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import ProblemSpec
from fedarena.records.transcript_files import require_new

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True)
class Pairing:
    """A defense against an attack.

    Attributes:
        defense, attack: what meets what, on which problem.
        seeds: the seeds, each of which gives a run.
        device, data_dir, secret, other_rounds: as in `GroupSpec`.
    """

    defense: MethodSpec
    attack: MethodSpec
    problem: ProblemSpec
    seeds: Sequence[int]
    device: str = "cpu"
    data_dir: Path | None = None
    secret: str = ""
    other_rounds: bool = False


@dataclass(frozen=True)
class Wanted:
    """The threats that the attack is to pose; None stands for all that apply.

    Attributes:
        party, form, knows: see `fedarena.goals.goal.Choices`.
    """

    party: Sequence[str] | None = None
    form: Sequence[str] | None = None
    knows: Sequence[str] | None = None


def plan(pairing: Pairing, wanted: Wanted) -> list[GroupSpec]:
    """The training runs of a pairing, including those without a defense.

    Raises:
        UserError: what cannot run is refused before anything is started.
    """
    goal = goals.of_attack(pairing.attack)
    if pairing.other_rounds and not goal.finds_other_rounds:
        raise UserError(
            f"option 'other-rounds' is given, but {pairing.attack.label} attacks no single uploads: leave it out"
        )
    _require_runnable(pairing, goal)
    choices = _choices(pairing.attack, goal, wanted)
    threats = goal.threats(pairing.attack, choices)
    goal.check_options(pairing.attack, f"attack {pairing.attack.name}", threats)
    clean, attacked = [], []
    for seed in pairing.seeds:
        for defense in dict.fromkeys((pairing.defense, MethodSpec(BASELINE))):
            spec = GroupSpec(
                problem=pairing.problem,
                defense=defense,
                attack=pairing.attack,
                threats=(),
                seed=seed,
                device=pairing.device,
                data_dir=pairing.data_dir,
                secret=pairing.secret,
                other_rounds=pairing.other_rounds,
            )
            clean += goal.clean_runs(spec)
            attacked += goal.groups(spec, threats if defense is pairing.defense else goal.undefended(threats))
    return clean + attacked


def with_transcripts(groups: Sequence[GroupSpec], place: TranscriptFolder | None) -> list[GroupSpec]:
    """The groups, which keep what they write down; as they are where there is no place for it.

    Raises:
        UserError: the attack reads no round, or the place is taken.
    """
    if place is None:
        return list(groups)
    attack, schedule = next((g.attack, g.problem.schedule) for g in groups if g.attack is not None)
    reads = goals.of_attack(attack).axis == "privacy" and compose.make_inference(attack).watched(schedule).written
    if not reads:
        raise UserError(
            f"option 'save-transcript' is {place.folder}, but {attack.label} reads no round, so that none is written "
            "down: allowed with attacks that read what crosses the wires"
        )
    require_new(groups, place)
    return [replace(group, transcript=place) for group in groups]


def _require_runnable(pairing: Pairing, goal: Goal) -> None:
    """Raise UserError for a problem that the defense or the attack refuses, on any seed: each has its own shards."""
    for i, seed in enumerate(pairing.seeds):
        try:
            first = root(seed, pairing.secret)
            problem = build(
                pairing.problem, first, pairing.data_dir, pairing.device, compose.auxiliary(pairing.defense)
            )
            protocol = compose.make_defense(pairing.defense, problem.task)
            goal.require_runnable(pairing.problem, problem, protocol, pairing.attack)
            require_summable(protocol, problem, first)
        except UserError as error:
            if i == 0:
                raise
            raise UserError(f"seed {seed}: {error}") from None


def _choices(attack: MethodSpec, goal: Goal, wanted: Wanted) -> Choices:
    """The wanted choices. Raises UserError for a choice that does not apply."""
    name, possible = (attack, *attack.rest)[-1].name, goal.choices(attack)
    for option, why in goal.idle_options.items():
        if getattr(wanted, option) is not None:
            raise UserError(f"option '{option}' is given, but {name} {why}")
    levels = _checked("knows", wanted.knows, KNOWLEDGE)
    for level in levels:
        if level not in possible.knows:
            raise UserError(f"option 'knows' is '{level}', allowed for {name}: {', '.join(possible.knows)}")
    return Choices(
        parties=_checked("party", wanted.party, possible.parties),
        forms=_checked("form", wanted.form, FORMS),
        knows=levels,
    )


def _checked(option: str, words: Sequence[str] | None, allowed: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words of an option, each once; () if it was not given. Raises UserError for a word that is not allowed."""
    if words is None:
        return ()
    known = {str(word): word for word in allowed}
    for word in words:
        if word not in known:
            raise UserError(f"option '{option}' is '{word}', allowed: {', '.join(allowed)}")
    return tuple(dict.fromkeys(known[word] for word in words))


def require_summable(defense: Defense, problem: Problem, seed: int) -> None:
    """Raise UserError if the options of the secure sum do not allow to sum the uploads of the first round.

    It is the round that a clean run with this seed begins with. No round is played where nothing can be refused:
    without a secure sum, or with one that takes vectors of any size and any length.
    """
    secure = defense.secure
    if secure is None or (secure.repeat == 1 and math.isinf(secure.limit)):
        return
    one = replace(problem.task.schedule, rounds=1, eval_every=0)
    brief = replace(problem, task=replace(problem.task, schedule=one))
    try:
        played = rounds.run(defense, brief, Rng(seed).child("federation"), watch=(0,)).rounds
    except UserError:
        raise
    except Exception:  # an error in a method, which the run itself will record
        return
    for r in played:  # None if too few clients were left
        shares = weights(problem.task.sizes, r.participants).to(problem.device)
        secure.require_room(rows(r.ups) * (shares / shares.sum())[:, None])
