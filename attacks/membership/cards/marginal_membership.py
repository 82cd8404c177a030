"""Card and options of `marginal-membership`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the marginal membership test."""

    rounds: int = option(25, "first rounds of the training that are attacked", low=1)
    scale: bool = option(False, "compare the numbers as they are; false: divided by their root mean square")


CARD = Card(
    name="marginal-membership",
    version=2,
    kind="attack",
    goal="membership",
    title="Membership by the distribution of a candidate's numbers alone, whatever their order",
    target="fedarena.attacks.membership.marginal_membership:MarginalMembership",
    options=Options,
    paper="Does Federated Learning Really Need Backpropagation?",
    authors="Feng, Pang, Du, Chen, Yan, Lin",
    year=2023,
    url="https://arxiv.org/abs/2301.12195",
    equations="Appendix D and Figure 5: the distributions of loss differences, side by side",
    departures=(
        "The paper looks at histograms of real data and of noise; here candidates are scored by the two-sample "
        "Kolmogorov-Smirnov distance, so that the check has a number.",
        "The two samples compared come from disjoint halves of the perturbations: at the same ones they would share "
        "what belongs to the joint distribution.",
        "Any observation is compared, not only loss differences.",
    ),
    check="AUC 0.5 on numbers that are normal given the data: tests/attacks/membership/test_marginal_membership.py",
    facts=(
        ("goal", "membership: half of the candidates were in the batch, half are held out"),
        ("reads", "any view that offers a simulator of what was observed"),
        ("form", "the paper's own check; if it finds nothing, joint-membership may still succeed"),
    ),
    usual=(("batch_size", "4"),),
)
