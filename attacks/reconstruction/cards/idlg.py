"""Card and options of `idlg`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import LeastSquaresOptions
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(LeastSquaresOptions):
    """Options of iDLG."""


CARD = Card(
    name="idlg",
    kind="attack",
    goal="reconstruction",
    title="iDLG: the label from the output layer, then DLG on the image",
    target="fedarena.attacks.reconstruction.idlg:IDLG",
    options=Options,
    version=2,
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
        "Batches, which the paper leaves out: labels are inferred by counts, and all images are searched for together.",
    ),
    usual=(("model", "mlp"), ("model.widths", "64"), ("model.activation", "elu"), ("lr", "0.05")),
    check="Section 4: every label of single samples is right, tests/attacks/reconstruction/test_idlg.py",
    facts=(
        ("reads", "any view that offers a simulator of what was observed and shows the output layer's gradient"),
        ("model", "smooth activations and weights near their start, as `dlg`; rows need features nowhere negative"),
        (
            "knows",
            "in the adaptive form half of the held-out data, whose distribution is its prior; prior=none: nothing",
        ),
    ),
)
