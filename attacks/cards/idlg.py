"""Card and options of `idlg`."""

from dataclasses import dataclass

from fedarena.cards import Card, option


@dataclass(frozen=True)
class Options:
    """Options of iDLG."""

    optimizer: str = option("lbfgs", "what minimises the distance", choices=("lbfgs", "adam"))
    iterations: int = option(3000, "batched gradient evaluations per victim and simulator, at most", low=1)
    lr: float = option(0.1, "learning rate of optimizer=adam", above=0)
    restarts: int = option(8, "starts per victim, run as one batch; the best match is kept", low=1)
    tv: float = option(0.0, "weight of the total variation of the candidate images", low=0)
    init: str = option(
        "dark",
        "law of the starting images: normal N(0, 1) as in the paper, uniform on [0, 1], dark uniform on [0, 0.1]",
        choices=("dark", "normal", "uniform"),
    )
    tolerance: float = option(3e-8, "relative squared distance at which the match is taken as exact", low=0)
    victims: int = option(10, "uploads attacked, spread evenly over the window", low=1)
    start: int = option(0, "first round attacked", low=0)
    window: int = option(60, "rounds written down for parties that need several", low=2)
    max_batch: int = option(8, "most samples behind one upload that are tried", low=1)


CARD = Card(
    name="idlg",
    kind="attack",
    title="iDLG: the label from the output layer, then DLG on the image",
    target="fedarena.attacks.idlg:IDLG",
    options=Options,
    paper="iDLG: Improved Deep Leakage from Gradients",
    authors="Zhao, Mopuri, Bilen",
    year=2020,
    url="https://arxiv.org/abs/2001.02610",
    equations="Section 3.1, Eq. 3 and 4; Algorithm 1",
    departures=(
        "The label is the one negative entry of the output bias's gradient, where the paper compares signs of rows of "
        "the weight; rows, by their sums, are read only where no bias is seen.",
        "Any observation is matched, not only gradients, and the distance is divided by the squared norm of what was "
        "observed, as `dlg` does.",
        "L-BFGS with a line search from several dark starts that race, as `dlg` does; the authors run one start, "
        "N(0, 1), at fixed step 1.",
        "Batches, which the paper leaves out: labels by counts, all images searched for together.",
    ),
    check="Section 4: every label of single samples is right, tests/attacks/test_idlg.py",
    facts=(
        ("reads", "any view that offers a simulator of what was observed and shows the output layer's gradient"),
        ("model", "smooth activations and weights near their start, as `dlg`; rows need features nowhere negative"),
    ),
)
