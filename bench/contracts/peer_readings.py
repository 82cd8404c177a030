"""What parties observe of protocols without a server: the models that a neighbour sends, round after round.

A neighbour v sends h_v = W_v − η·up in each round, where W_v is what it mixed of the messages before. Who knows both
knows the upload, up = (W_v − h_v)/η. All nodes begin with one public model, so W_v is known in the first round.

    paper form      `difference`  W_v is taken to be h_v of the round before: their difference is "mainly the gradient"
                                  (Zhang & Wang 2021, Appendix D, which names the neighbours' part that is left)
    adaptive form   `mixing`      W_v is mixed from the messages that the party saw, by the protocol's own rule. For
                                  those that it did not see, the mean of all that it saw stands. For a client
                                  in a complete graph nothing is missing, and the upload is exact
                    `picked`      for rules that return the mean of few messages, such as Krum, if the party did not see
                                  all: h_v tells which ones (`fedarena.contracts.taken_messages`), and W_v is what the
                                  rule makes of many messages that are this mean. For Krum the upload is exact where the
                                  party saw the message; ARC may shorten it, by what others sent

Of a momentum the adaptive form keeps what the round alone added, where it knows the victim's upload of the round
before, too (`fedarena.contracts.fresh_uploads`). That takes the messages of the two rounds before; all nodes take part
in every round. The difference of two uploads has the errors of both. So of parameters that are hidden the upload as it
is is another reading, `MOMENTUM_LEFT`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from fedarena.contracts.fresh_uploads import undoes_momentum, without_earlier
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.peers import NO_SERVER, Peers
from fedarena.contracts.plain_readings import plain_gradient
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, images_behind
from fedarena.contracts.taken_messages import are_told, nearest_mean
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, same_names, shaped, stack, weighted_mean
from fedarena.core.threat import CURIOUS, NotApplicable, Threat

MOMENTUM_LEFT = ", momentum left"
"""The suffix of a reading's name if momenta stay in uploads from which they could be taken out."""


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
    earlier = _earlier(seen, rounds) if undoes_momentum(defense, threat) else None
    found = traces(threat, seen, sorted({*rounds, *(earlier or ())}))
    if isinstance(found, NotApplicable):
        return found

    def reading(name: str, trace: Trace, taken: Collection[int] | None) -> Reading:
        return Reading(name, tuple(_observation(defense, threat, seen[t], trace, taken) for t in rounds))

    made = [reading(trace.name, trace, earlier) for trace in found]
    hidden = [trace for trace in found if earlier and trace.estimated is not None]
    return made + [reading(trace.name + MOMENTUM_LEFT, trace, None) for trace in hidden]


def _earlier(seen: Mapping[int, Seen], rounds: Sequence[int]) -> list[int]:
    """The rounds before these in which the party can tell the same victim's upload, too."""
    return [
        t - 1
        for t in rounds
        if t - 1 in seen and (t == 1 or t - 2 in seen) and victim_of(seen[t - 1]) == victim_of(seen[t])
    ]


def plain_traces(defense: Peers, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]) -> Sequence[Trace]:
    """Of messages that are models."""
    if threat.form == "paper":
        name, model = "difference", _before
    elif any(
        are_told(defense.takes_mean_of(victim_of(seen[t]))) and not _all_heard(defense, seen, t) for t in rounds if t
    ):
        name, model = "picked", _picked
    else:
        name, model = "mixing", _mixed
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
    usual = weighted_mean(stack(list(messages.values())), next(iter(messages[victim].values())).new_ones(len(messages)))
    known_or_usual = {j: messages.get(j, usual) for j in defense.graph.mixing[victim]}
    return _mix(defense.in_round(t - 1), messages[victim], victim, known_or_usual)


def _all_heard(defense: Peers, seen: Mapping[int, Seen], t: int) -> bool:
    """Whether the party saw all messages that the victim mixed before a round."""
    return defense.graph.mixing[victim_of(seen[t])].keys() <= heard(seen[t - 1]).keys()


def _picked(defense: Peers, seen: Mapping[int, Seen], t: int) -> Tensors:
    """What the victim made of the few messages that it took, as far as its next message tells."""
    if not t:
        return seen[t].down
    victim, messages = victim_of(seen[t]), heard(seen[t - 1])
    around, own = defense.graph.mixing[victim], messages[victim]
    sent, then = {j: flatten(message) for j, message in messages.items()}, flatten(heard(seen[t])[victim])
    mean = shaped(nearest_mean(around, sent, then, defense.takes_mean_of(victim))[1], own)
    return _mix(defense.in_round(t - 1), own, victim, dict.fromkeys(around, mean))


def _mix(defense: Peers, own: Tensors, node: int, messages: Mapping[int, Tensors]) -> Tensors:
    """What a node makes of its own model and of the messages of its neighbourhood."""
    cohort = defense.cohort(node, next(iter(own.values())))
    differences = stack([combine(1.0, own, -1.0, messages[j]) for j in cohort.clients])
    return defense.mix(own, differences, cohort, {}, Rng(0))[0]


def _upload(defense: Peers, trace: Trace, t: int) -> Tensors:
    """The upload behind the step from one model to the other."""
    return defense.in_round(t).direction_between(*trace.models[t])


def _fresh(defense: Peers, trace: Trace, t: int, earlier: Collection[int] | None) -> Tensors | None:
    """What a round alone added to a momentum; None where the party cannot tell it, or takes nothing out."""
    if earlier is None:
        return None
    upload = _upload(defense, trace, t)
    if not t:
        return upload
    return without_earlier(defense, upload, _upload(defense, trace, t - 1)) if t - 1 in earlier else None


def _observation(
    defense: Peers, threat: Threat, now: Seen, trace: Trace, earlier: Collection[int] | None
) -> Observation:
    """One round's.

    Args:
        earlier: the rounds whose uploads are taken out of the momentum of the round after; None: an upload is taken as
            if it held no momentum.
    """
    t, victim, (model, _) = now.index, victim_of(now), trace.models[now.index]
    upload, fresh = _upload(defense, trace, t), _fresh(defense, trace, t, earlier)
    defense = defense.in_round(t)
    gradient, adaptive = plain_gradient(defense, upload, fresh, (victim,)), threat.form == "adaptive"
    through, plain = ThroughProtocol(defense, model, (victim,)), PlainGradient(defense.task, model, (victim,))
    return Observation(
        round=t,
        clients=(victim,),
        images=images_behind(defense.task, victim),
        target=(upload if fresh is None else fresh) if adaptive else gradient,
        simulate=through if adaptive else plain,
        output_bias=defense.task.output_bias,
        estimate=gradient if trace.estimated is None else same_names(gradient, trace.estimated),
        sent=model,
    )
