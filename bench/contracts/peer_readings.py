"""What parties observe of protocols without a server: the models that a neighbour sends, round after round.

A neighbour v sends h_v = W_v − η·up in each round, where W_v is what it mixed of the messages before. Who knows both
knows the upload, up = (W_v − h_v)/η. All nodes begin with one public model, so W_v is known in the first round.

    paper form      `difference`  W_v is taken to be h_v of the round before: their difference is "mainly the gradient"
                                  (Zhang & Wang 2021, Appendix D, which names the neighbours' part that is left)
    adaptive form   `mixing`      W_v is mixed from the messages that the party saw, by the protocol's own rule. For
                                  those that it did not see, the mean of all that it saw stands. In a complete
                                  graph nothing is missing, and the upload is exact
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.peers import NO_SERVER, Peers
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, images_behind
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, same_names, stack, weighted_mean
from fedarena.core.threat import CURIOUS, NotApplicable, Threat


def readings(
    defense: Peers,
    threat: Threat,
    seen: Mapping[int, Seen],
    victims: Sequence[int],
    traces: Callable[[Threat, Mapping[int, Seen], Sequence[int]], Sequence[Trace] | NotApplicable],
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`.

    Args:
        traces: what the party makes of its victim's messages in the given rounds, each seen with the one before it.
    """
    if threat.party not in ("client", "eavesdropper"):
        return NO_SERVER
    known = [t for t in victims if t in seen and _reads(seen[t], victim_of(seen[t]))]
    if not known:
        return NotApplicable("the node that is attacked is none that the party hears, or is one of its own")
    rounds = [t for t in known if t == 0 or t - 1 in seen]
    if not rounds:
        return NotApplicable("of no round attacked the messages before are known, from which nodes began")
    found = traces(threat, seen, rounds)
    if isinstance(found, NotApplicable):
        return found
    return [
        Reading(trace.name, tuple(_observation(defense, threat, seen[t], trace, t) for t in rounds)) for trace in found
    ]


def plain_traces(defense: Peers, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]) -> Sequence[Trace]:
    """Of messages that are models."""
    name, model = ("mixing", _mixed) if threat.form == "adaptive" else ("difference", _before)
    return [Trace(name, {t: (model(defense, seen, t), heard(seen[t])[victim_of(seen[t])]) for t in rounds})]


def _reads(now: Seen, node: int) -> bool:
    """Whether the party hears a node that is none of its own."""
    return node in heard(now) and node != CURIOUS and node not in now.halves


def victim_of(now: Seen) -> int:
    """The neighbour that is attacked: the one that was drawn, else the first that the party hears beside its own."""
    if now.victim is not None:
        return now.victim
    return min(sender for sender in heard(now) if _reads(now, sender))


def heard(now: Seen) -> dict[int, Tensors]:
    """What each node sent that the party heard, or sent itself; one message of each."""
    return {sender: message for (sender, _), message in now.messages.items()}


def _before(defense: Peers, seen: Mapping[int, Seen], t: int) -> Tensors:
    """What the victim sent in the round before; in the first round the public model."""
    return heard(seen[t - 1])[victim_of(seen[t])] if t else seen[t].down


def _mixed(defense: Peers, seen: Mapping[int, Seen], t: int) -> Tensors:
    """What the victim mixed of the messages before, as far as they are known."""
    if not t:
        return seen[t].down
    victim, messages = victim_of(seen[t]), heard(seen[t - 1])
    own = messages[victim]
    usual = weighted_mean(stack(list(messages.values())), next(iter(own.values())).new_ones(len(messages)))
    cohort = defense.cohort(victim, next(iter(own.values())))
    differences = stack([combine(1.0, own, -1.0, messages.get(j, usual)) for j in cohort.clients])
    return defense.in_round(t - 1).mix(own, differences, cohort, {}, Rng(0))[0]


def _observation(defense: Peers, threat: Threat, now: Seen, trace: Trace, t: int) -> Observation:
    """The upload behind the step from one model to the other."""
    victim, (model, after) = victim_of(now), trace.models[t]
    defense = defense.in_round(t)
    upload = defense.direction_between(model, after)
    gradient, adaptive = per_step(defense, upload, (victim,)), threat.form == "adaptive"
    through, plain = ThroughProtocol(defense, model, (victim,)), PlainGradient(defense.task, model, (victim,))
    return Observation(
        round=t,
        clients=(victim,),
        images=images_behind(defense.task, victim),
        target=upload if adaptive else gradient,
        simulate=through if adaptive else plain,
        output_bias=defense.task.output_bias,
        estimate=gradient if trace.estimated is None else same_names(gradient, trace.estimated),
        sent=model,
    )
