"""Property inference: do the samples behind an observation have a property that is unrelated to their class?

The experiment is that of Melis et al. (2019, Section 6.2). The victim is the first client beside the malicious one;
without a server it is the neighbour that is read. In the rounds attacked it works on samples that all have the
property, or on samples that all lack it; all other clients work on samples that lack it. The number of rounds with the
property is fixed, and the rounds are drawn at random. Samples for which the property is not known are in none of these
batches. In all other rounds every client draws as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, PropertyScores, Scores, Watch
from fedarena.contracts.observation import Reading, Simulator
from fedarena.contracts.peers import Peers
from fedarena.contracts.view import Population
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, same_names
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.peer_round import coalition
from fedarena.federation.population import drawn
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import Draw
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.metrics.reconstruction import median_estimate_metrics
from fedarena.goals.pairing_table import Cell
from fedarena.goals.ranking import Ranking, RankingText
from fedarena.goals.text import given_of_readings, span, values
from fedarena.problem.task import Batch

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

IN_CLEAR = "in clear"
"""The suffix of a reading's name if it leaves out everything that the protocol hides."""


class PropertyOfBatchText(RankingText):
    """The words of `PropertyOfBatch`."""

    distinguishes = "batches with the property from others"

    def lines(self, cell: Cell) -> list[str]:
        lines = super().lines(cell)
        if "by_round" in cell.metrics:
            lines.append(f"trained {'in each round' if cell.metrics['by_round'].value > 0.5 else 'over all rounds'}")
        if "by_slopes" in cell.metrics:
            lines += ["by how large each layer's inputs were"] if cell.metrics["by_slopes"].value > 0.5 else []
        if "own_auc" in cell.metrics:
            lines.append(f"on own batches {cell.metrics['own_auc'].value:.2f}")
        return lines

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not values(records, "rounds_attacked"):
            return []
        having = span(values(records, "rounds_with_property"))
        sentence = (
            f"Without any attack: AUC 0.5. Rounds attacked: {span(values(records, 'rounds_attacked'))} a cell and seed"
        )
        return [f"{sentence}, {having} of them with the property."]

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        name = property_of(problem, attack)

        rounds = len(attack.watched(problem.task.schedule).victims)

        def bits(readings: Sequence[Reading]) -> str:
            return f"and decides for each of {rounds} rounds whether its samples are '{name}'"

        shard = ", and its shard" if transcript.threat.visibility.own else ""
        return given_of_readings(defense, transcript, attack, bits, f"the held-out data{shard}")


class PropertyOfBatch(Ranking):
    """The answer is a `fedarena.contracts.inference.PropertyScores`, compared with whether each observation's samples
    had the property."""

    text: ClassVar[RankingText] = PropertyOfBatchText()
    reads_uploads = True
    what_leaks = "a property of batches"

    forms_differ = True

    def refuse(self, problem: Problem, protocol: Defense, attack: Inference) -> None:
        property_of(problem, attack)
        for client in range(len(problem.shards)):
            require_pool("without", problem, attack, client)
        if not isinstance(protocol, Peers):  # without a server each seed draws its victim
            require_pool("with", problem, attack, beside(problem))

    def draws(self, problem: Problem, protocol: Defense, attack: Inference, watch: Watch, root: Rng) -> Draw:
        victim, rng = victim_of(problem, protocol, root), root.child("draws")
        self.refuse(problem, protocol, attack)
        require_pool("with", problem, attack, victim)
        have = rounds_with(watch.victims, attack.options.every, rng)
        held = [pools(problem, attack, c) for c in range(len(problem.shards))]
        attacked = frozenset(watch.victims)

        def draw(t: int, client: int) -> Batch | None:
            if t not in attacked:
                return None
            having, lacking = held[client]
            pool = having if client == victim and t in have else lacking
            return batch_of(problem, client, pool, rng.child("batch", t, client))

        return draw

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        # The experiment gives the property to one client's batches; without a server it is the victim that was drawn.
        root = Rng(finished.spec.root)
        victim = victim_of(finished.problem, finished.defense, root)
        alone = isinstance(finished.defense, Peers)
        seen = transcript.seen if alone else {t: replace(s, victim=None) for t, s in transcript.seen.items()}
        readings = finished.readings(transcript.threat, seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        population = population_of(finished, transcript.threat, attack)
        if isinstance(population, NotApplicable):
            return population
        # The same draws as `draws` made before the training.
        watch = attack.watched(finished.problem.task.schedule)
        have = rounds_with(watch.victims, attack.options.every, root.child("draws"))
        challenges: list[Challenge | NoChallenge] = []
        for reading in (part for whole in readings for part in with_clear_part(whole)):
            observations = tuple(o for o in reading.observations if victim in o.clients)
            truth = torch.tensor([o.round in have for o in observations])
            if not bool(truth.any()) or bool(truth.all()):
                why = "the victim was not seen both in rounds in which it had the property and in others"
                challenges.append(NoChallenge(reading.name, why))
                continue
            of_victim = replace(reading, observations=observations)
            truths = [finished.truth(o) for o in observations]
            view = replace(finished.view(transcript.threat, attack, of_victim, truths), population=population)
            challenges.append(Challenge(reading.name, view, truth, median_estimate_metrics(finished, observations)))
        return challenges

    def judge(self, answer: PropertyScores, challenge: Challenge) -> dict[str, float]:
        return property_metrics(answer, challenge.answers, challenge.readings)

    def pooled(self, answer: PropertyScores, challenge: Challenge) -> tuple[Sequence[Scores], Sequence[Tensor]]:
        return [Scores(answer.values)], [challenge.answers]

    # -- in words --------------------------------------------------------------------------------------


# -- the experiment -------------------------------------------------------------------------------------


def property_of(problem: Problem, attack: Inference) -> str:
    """The attribute that the attack infers. Raises UserError."""
    known, name = tuple(problem.attributes), attack.options.property
    if not known:
        raise UserError(
            f"option 'dataset' is {problem.dataset}, whose samples have no attributes beside their class, allowed with "
            "property inference: digits, lfw, utkface or another that has some"
        )
    if name and name not in known:
        raise UserError(f"option 'property' is '{name}', allowed with {problem.dataset}: {', '.join(known)}")
    return name or known[0]


def victim_of(problem: Problem, protocol: Defense, root: Rng) -> int:
    """`beside`; without a server the neighbour that is read."""
    if isinstance(protocol, Peers):
        return coalition(root.child("federation"), protocol)[0]
    return beside(problem)


def beside(problem: Problem) -> int:
    """The first client beside client 0, where there is one."""
    return min(1, len(problem.shards) - 1)


def require_pool(what: str, problem: Problem, attack: Inference, client: int) -> None:
    """Raise UserError where a client has no sample `with` the property, or none `without` it."""
    having, lacking = pools(problem, attack, client)
    if not len(having if what == "with" else lacking):
        raise UserError(
            f"option 'property' is {property_of(problem, attack)}, but client {client} holds no sample {what} it: "
            "choose another attribute or partition"
        )


def pools(problem: Problem, attack: Inference, client: int) -> tuple[Tensor, Tensor]:
    """A client's samples with the property and without it, as indices of training samples."""
    shard, known = problem.shards[client], problem.attributes[property_of(problem, attack)][0]
    return shard[known[shard] == 1], shard[known[shard] == 0]


def rounds_with(rounds: Sequence[int], every: float, rng: Rng) -> frozenset[int]:
    """The attacked rounds in which the victim has the property: one in `every`, at least one, and not all."""
    count = min(max(1, round(len(rounds) / every)), len(rounds) - 1)
    order = torch.randperm(len(rounds), generator=rng.child("rounds").torch())
    return frozenset(rounds[i] for i in order[:count].tolist())


def batch_of(problem: Problem, client: int, pool: Tensor, rng: Rng) -> Batch:
    """The local work of a round on samples of the pool: the usual number, in a new order in every local epoch."""
    schedule, generator = problem.task.schedule, rng.torch()
    n = schedule.taken(len(problem.shards[client]))
    chosen = drawn(pool, n, generator)
    again = [chosen[torch.randperm(n, generator=generator).to(pool.device)] for _ in range(schedule.local_epochs - 1)]
    index = torch.cat([chosen, *again]).reshape(-1, schedule.batch_size)
    return Batch(problem.inputs(index), problem.y[index])


def population_of(finished: FinishedRun, threat: Threat, attack: Inference) -> Population | NotApplicable:
    """The attacker's own samples: the held-out data, and a client's shard, with the one attribute that is inferred.

    The attacker owns all of the held-out data, because none of it is among the samples to judge.
    """
    problem, name = finished.problem, property_of(finished.problem, attack)
    x, y, known = problem.x_test.float() / problem.scale, problem.y_test, problem.attributes[name][1]
    if threat.visibility.own:
        shard = problem.shards[threat.client]
        x, y = torch.cat([x, problem.inputs(shard)]), torch.cat([y, problem.y[shard]])
        known = torch.cat([known, problem.attributes[name][0][shard]])
    for what, value in (("with", 1), ("without", 0)):
        if not bool((known == value).any()):
            return NotApplicable(f"the attacker has no sample of its own {what} the property '{name}'")
    return Population(x, y, {name: known})


# -- what is not hidden ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A simulator that gives some of the tensors of another one.

    Attributes:
        whole: the other simulator. names: the tensors that are given.
    """

    whole: Simulator
    names: tuple[str, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return same_names(self.whole(x, y), self.names)


def with_clear_part(reading: Reading) -> list[Reading]:
    """The reading; if the protocol hides only some of the parameters, also a reading of the other parameters alone.

    The second reading is that of an attacker who ignores what is hidden.
    """
    clear_parts = []
    for o in reading.observations:
        hidden = set(o.estimate or ())
        clear = tuple(name for name in o.target if name not in hidden)
        if clear and hidden and hidden < set(o.target):
            part = Part(o.simulate, clear)
            clear_parts.append(replace(o, target=same_names(o.target, clear), simulate=part, estimate=None, rough=None))
    if len(clear_parts) < len(reading.observations):
        return [reading]
    return [reading, Reading(f"{reading.name}, {IN_CLEAR}", tuple(clear_parts))]


# -- the judge ------------------------------------------------------------------------------------------


def property_metrics(answer: PropertyScores, truth: Tensor, readings: int = 1) -> dict[str, float]:
    """How well the scores separate rounds with the property from others.

    Args:
        truth: [observations] (bool).
        readings: see `fedarena.goals.metrics.membership.membership_metrics`.

    Returns:
        The metrics of `fedarena.goals.metrics.membership.membership_metrics`, with rounds as independent candidates,
        and the number of rounds; `own_auc`, the AUC that the attacker expected, if it made an estimate; `by_round`, 1
        if it trained within each round; `by_slopes`, 1 if it used how large layers' inputs were.

    Raises:
        ValueError: there is not one score per observation, or all observations are of one kind.
    """
    if answer.values.shape != truth.shape:
        raise ValueError(f"scores of shape {tuple(answer.values.shape)} for {len(truth)} observations")
    metrics = membership_metrics([Scores(answer.values)], [truth], grouped=False, readings=readings)
    rounds, having = int(metrics.pop("candidates")), int(truth.sum())
    classifier = {"by_round": float(answer.by_round), "by_slopes": float(answer.by_slopes)}
    classifier |= {} if answer.own_auc is None else {"own_auc": answer.own_auc}
    return {**metrics, **classifier, "rounds_attacked": float(rounds), "rounds_with_property": float(having)}


GOAL = PropertyOfBatch()
