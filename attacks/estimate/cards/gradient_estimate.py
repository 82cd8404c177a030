"""Card and options of `gradient-estimate`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of gradient estimation."""

    rounds: int = option(60, "rounds whose gradient is estimated, spread evenly over the window", low=1)
    start: int = option(0, "first round estimated", low=0)
    window: int = option(
        200, "rounds written down from there; estimates that need several rounds get all of them", low=2
    )


CARD = Card(
    name="gradient-estimate",
    kind="attack",
    goal="estimate",
    title="How near a party comes to the gradient before it searches for samples",
    target="fedarena.attacks.estimate.gradient_estimate:GradientEstimates",
    options=Options,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Wang, Zhang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Section 6.3, Figure 3: cosine and relative L2 error of the estimate, by round",
    departures=(
        "The paper looks at a DBCL client alone; here every party of every defense is measured that has an estimate.",
        "A control is measured as well: the estimate that a client's own samples or upload would give in the others' "
        "place. If clients are alike, it has a high cosine without reading anything.",
    ),
    check="Figure 3: options I and II have cosine about 0; tests/attacks/estimate/test_gradient_estimate.py, "
    "`bench reproduce dbcl/figure3`",
    facts=(
        ("goal", "estimate: the gradient of the samples behind an upload, or the server's update"),
        ("reads", "the defense's own estimate, in the paper and the adaptive form where they differ"),
        ("DBCL", "estimates name the sketched parameters alone; biases and output layer cross the wire in clear"),
        (
            "PBPFL's client",
            "paper form: the masked update as if it were plain; adaptive form: the update of the hidden layers up to "
            "the scaling of units, C(W_t) − C(W_{t+1}); no estimate of the output layer",
        ),
        (
            "PBPFL's eavesdropper",
            "paper form: ∂L̂/∂Ŵ as if it were plain; adaptive form: the gradient at the canonical form C(W_t), judged "
            "there: the mask scales units, which changes no function, so that it is neither visible nor needed",
        ),
        ("BAFFLE", "the Stein estimate in both forms"),
        (
            "low cosine",
            "does not mean that samples are safe: dlg and others match what crossed the wire, and need no estimate",
        ),
    ),
    usual=(("model", "mlp"), ("batch_size", "32"), ("rounds", "200"), ("lr", "0.03")),
)
