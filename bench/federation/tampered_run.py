"""A finished run in which a malicious server shapes the attacked rounds (`fedarena.contracts.active_inference`).

Each attacked round is played once more as it was, with the same batches, memories and noise of the clients, but for the
messages of the server. So all that changes is what the server changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Candidates, Observation, Reading, Simulator
from fedarena.contracts.peers import NO_SERVER, Peers
from fedarena.contracts.secure_sum import TooFewSurvivors, TooLarge
from fedarena.contracts.transcript import Round, Seen, cut, weights
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite, format_of, row, scale, stack, to, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.population import population
from fedarena.federation.secure_aggregation import sum_up

DROPPED = NotApplicable("in each round attacked the clients that the server is after dropped out of the secure sum")


@dataclass(frozen=True)
class TamperedRound:
    """A round that a malicious server has shaped.

    Attributes:
        rounds: the round as it was played, once for each message that targets got, with that message as the broadcast.
        bait: what the server sent.
    """

    rounds: tuple[Round, ...]
    bait: Bait

    @property
    def round(self) -> Round:
        """The round with what the first targets got."""
        return self.rounds[0]

    @property
    def whole(self) -> Round:
        """The round of all targets together, with what the first of them got as the broadcast."""
        return replace(self.round, averaged=tuple(client for r in self.rounds for client in r.averaged))


@dataclass(frozen=True)
class TamperedRun(FinishedRun):
    """A finished run with some rounds played as a malicious server shaped them.

    Attributes:
        tampered: these rounds, by number.
    """

    tampered: Mapping[int, TamperedRound] = field(default_factory=dict)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """The readings of each shaped round beside the honest ones, since in each of them one round alone is shaped."""
        by_name: dict[str, list[Observation]] = {}
        why = NotApplicable("none of the rounds attacked took place")
        for t in (t for t in victims if t in self.tampered):
            by_message: list[Sequence[Reading]] = []
            for r in self.tampered[t].rounds:
                readings = super().readings(threat, {**seen, **cut([r], threat)}, [t])
                if isinstance(readings, NotApplicable):
                    why = readings
                    break
                by_message.append(readings)
            else:
                whole = by_message[0]
                if len(by_message) > 1:
                    all_readings = super().readings(threat, {**seen, **cut([self.tampered[t].whole], threat)}, [t])
                    assert not isinstance(all_readings, NotApplicable), "the parts have readings"
                    whole = all_readings
                for of_all, *same in zip(whole, *by_message, strict=True):
                    parts = [reading.observations for reading in same]
                    joined = joint(of_all.observations, parts, self.problem.task.sizes)
                    by_name.setdefault(same[0].name, []).extend(self._without_spoiled(o) for o in joined)
        return [Reading(name, tuple(observations)) for name, observations in by_name.items()] or why

    def round(self, t: int) -> Round:
        return self.tampered[t].round if t in self.tampered else super().round(t)

    def view(
        self,
        threat: Threat,
        attack: Inference,
        reading: Reading,
        truths: Sequence[tuple[Tensor, Tensor]] = (),
        candidates: Sequence[Candidates] = (),
    ) -> View:
        """The view of a reading, with the models that were sent."""
        sent = tuple(
            replace(o, sent=self.tampered[o.round].bait.messages[o.clients[0]].params) for o in reading.observations
        )
        return super().view(threat, attack, Reading(reading.name, sent), truths, candidates)

    def _without_spoiled(self, o: Observation) -> Observation:
        """The observation without parameters in which other clients' uploads are not 0."""
        spoiled = self.tampered[o.round].bait.spoiled
        if not spoiled:
            return o
        return replace(
            o,
            target=without(spoiled, o.target),
            simulate=SimulateWithout(spoiled, o.simulate),
            estimate=None if o.estimate is None else without(spoiled, o.estimate),
            output_bias=None if o.output_bias in spoiled else o.output_bias,
        )


def without(names: tuple[str, ...], tensors: Tensors) -> Tensors:
    """All tensors but those of these names."""
    return {name: t for name, t in tensors.items() if name not in names}


@dataclass(frozen=True)
class SimulateWithout:
    """Simulator: what another one gives, but for some tensors."""

    names: tuple[str, ...]
    whole: Simulator

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return without(self.names, self.whole(x, y))


@dataclass(frozen=True)
class SimulateParts:
    """Simulator of clients that got different messages: the mean of what each part of them would have given.

    Attributes:
        parts: the simulators. images: how many samples each takes. shares: their parts of the mean.
    """

    parts: tuple[Simulator, ...]
    images: tuple[int, ...]
    shares: tuple[float, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        of_parts = zip(self.parts, x.split(self.images), y.split(self.images), strict=True)
        return weighted_mean(stack([part(xs, ys) for part, xs, ys in of_parts]), x.new_tensor(self.shares))


def joint(
    whole: Sequence[Observation], parts: Sequence[Sequence[Observation]], sizes: Sequence[int]
) -> Sequence[Observation]:
    """Observations of one sum as each part of its clients explains them → of all these clients together.

    Args:
        whole: as if all had got the first message. What was seen, which may be divided by the clients' mean number of
            local steps, is taken from it.
    """
    if len(parts) == 1:
        return parts[0]
    together = []
    for of_all, *same in zip(whole, *parts, strict=True):
        counts = [sum(sizes[c] for c in o.clients) for o in same]
        simulate = SimulateParts(
            tuple(o.simulate for o in same),
            tuple(o.images for o in same),
            tuple(count / sum(counts) for count in counts),
        )
        clients = tuple(client for o in same for client in o.clients)
        images = sum(o.images for o in same)
        # What is estimated of one model, and first-order forms at one model, hold for none of several.
        together.append(replace(of_all, clients=clients, images=images, simulate=simulate, rough=None, estimate=None))
    return together


def tampered_run(finished: FinishedRun, attack: ActiveInference, victims: Sequence[int]) -> TamperedRun | NotApplicable:
    """The run with the rounds of `victims` that were written down, as the attack shapes them; or why it cannot.

    Rounds whose targets all dropped out are left out, as those are in which a curious server gets no sum.
    """
    if isinstance(finished.defense, Peers):
        return NO_SERVER
    tampered, dropped = {}, False
    for r in finished.run.rounds:
        if r.index in victims:
            played = _played(finished, attack, r)
            if isinstance(played, NotApplicable):
                return played
            if played is None:
                dropped = True
            else:
                tampered[r.index] = played
    if dropped and not tampered:
        return DROPPED
    return TamperedRun(
        spec=finished.spec,
        problem=finished.problem,
        defense=finished.defense,
        run=finished.run,
        control=finished.control,
        tampered=tampered,
    )


def _played(finished: FinishedRun, attack: ActiveInference, r: Round) -> TamperedRound | NotApplicable | None:
    """One round with the attack's messages in place of the server's; None if its targets dropped out."""
    problem, root = finished.problem, finished.spec.root
    opportunity = Opportunity(
        protocol=finished.defense.in_round(r.index),
        state=State(r.params, round=r.index, extra=r.extra),
        participants=r.participants,
        victim=r.participants[0] if r.victim is None else r.victim,
        population=population(problem, root) if attack.needs_population else None,
    )
    # A seed of its own, from which the run's seed cannot be computed back.
    bait = attack.bait(opportunity, Rng(Rng(root).child("malicious server", r.index).integer()))
    if isinstance(bait, NotApplicable):
        return bait
    _check(bait, r, opportunity)
    ups = _answers(finished, bait, r)
    answered = replace(r, ups=ups, statistics={})  # those of other models; no attack of a malicious server reads any
    shaped = _summed(finished, bait, answered) if opportunity.summed else answered
    return TamperedRound(_by_message(shaped, bait), bait) if isinstance(shaped, Round) else shaped


def _by_message(r: Round, bait: Bait) -> tuple[Round, ...]:
    """The round with each message that a target got as the broadcast, and of a sum those who got it as its clients."""
    summed = r.mean is not None  # without, `averaged` is at most the client that a rule picked
    read = r.averaged if summed else bait.targets
    rounds = []
    for message in bait.different:
        clients = tuple(client for client in read if client in bait.targets and bait.messages[client] is message)
        if clients:
            one = replace(r, params=message.params, down=message.down, secret=message.secret)
            rounds.append(replace(one, averaged=clients) if summed else one)
    return tuple(rounds)


def _check(bait: Bait, r: Round, opportunity: Opportunity) -> None:
    """Raise ValueError unless each participant gets a message that the protocol's clients take."""
    if set(bait.messages) != set(r.participants):
        raise ValueError(f"the attack sends messages to {sorted(bait.messages)}, allowed: {sorted(r.participants)}")
    if not bait.targets or not set(bait.targets) <= set(r.participants):
        raise ValueError(f"the attack is after clients {bait.targets}, allowed: some of {sorted(r.participants)}")
    if len({id(bait.messages[client]) for client in bait.targets}) > 1 and not opportunity.summed:
        raise ValueError(
            "the attack sends the clients whose samples it reads different messages, allowed: the same, unless uploads "
            "are summed securely"
        )
    for message in bait.different:
        if not opportunity.protocol.takes(message.down, r.down) or not finite(message.down):
            raise ValueError(
                "the attack sends a message that is not in the protocol's format, allowed: finite tensors, in this "
                f"round by an honest server of the names, shapes and types {format_of(r.down)}"
            )


def _answers(finished: FinishedRun, bait: Bait, r: Round) -> Tensors:
    """The uploads [participants] of honest clients that got these messages."""
    defense, rng = finished.defense.in_round(r.index), Rng(finished.spec.root).child("federation")
    ups: dict[int, Tensors] = {}
    for message in bait.different:
        whom = [i for i, client in enumerate(r.participants) if bait.messages[client] is message]
        noises = [defense.draw(rng.child("noise", r.index, r.participants[i])) for i in whom]
        sent, _ = defense.clients(
            message.down,
            [r.batches[i] for i in whom],
            [r.memories[i] for i in whom],
            [to(noise, finished.problem.device) for noise in noises],
        )
        ups |= {i: row(sent, position) for position, i in enumerate(whom)}
    return stack([ups[i] for i in range(len(r.participants))])


def _summed(finished: FinishedRun, bait: Bait, r: Round) -> Round | NotApplicable | None:
    """The round with the secure sum of its uploads, read as the targets' mean alone; None if these dropped out."""
    secure, device = finished.defense.secure, finished.problem.device
    assert secure is not None
    counts = weights(finished.problem.task.sizes, r.participants).to(device)
    rng = Rng(finished.spec.root).child("federation").child("secure", r.index)
    try:
        summed = sum_up(secure, r.ups, Cohort(r.participants, counts), rng)
    except (TooLarge, TooFewSurvivors) as error:
        return NotApplicable(f"the answers of the clients cannot be summed securely: {error}")
    targets = tuple(client for client in summed.clients if client in bait.targets)
    if not targets:
        return None
    share = float(weights(finished.problem.task.sizes, targets).sum()) / float(summed.weight)
    return replace(r, wire=summed.wire, mean=scale(1 / share, summed.mean), averaged=targets)
