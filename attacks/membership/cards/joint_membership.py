"""Card and options of `joint-membership`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the joint membership test."""

    rounds: int = option(25, "first rounds of the training that are attacked", low=1)


CARD = Card(
    name="joint-membership",
    version=2,
    kind="attack",
    goal="membership",
    title="Membership by the cosine of a candidate's own contribution with what was seen",
    target="fedarena.attacks.membership.joint_membership:JointMembership",
    options=Options,
    departures=(
        "Not from a paper: the usual gradient-cosine test of membership, taken through the protocol; "
        "against BAFFLE it answers the paper's Appendix D, which compares distributions and so cannot see the leak.",
    ),
    equations="score(x) = cos(a(x), v), a(x) what a batch of nothing but x would have given, v what was seen",
    facts=(
        ("goal", "membership: half of the candidates were in the batch, half are held out"),
        ("reads", "any view that offers a simulator of what was observed"),
        (
            "beside DP",
            "the question is put with prior 1/2 for the very batch, so sampling batches by chance protects no one "
            "here, while it is part of what ε promises",
        ),
        ("model", "best at the start of training: a model that fits its data gives small gradients to all of them"),
    ),
    usual=(("batch_size", "4"),),
)
