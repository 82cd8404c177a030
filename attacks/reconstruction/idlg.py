"""iDLG, Improved Deep Leakage from Gradients (Zhao, Mopuri & Bilen 2020): the label first, then the image alone.

    c* = the class whose part of the output layer's gradient has the other sign           (Section 3.1, Eq. 3)
    min over x' [n, *shape]   Σ_l ‖simulate(x', e_c*)_l − target_l‖² / Σ_l ‖target_l‖²     (Algorithm 1)

The label is read from the output layer's bias, whose gradient is softmax − label, or where there is none, or it is not
seen, from the rows of its weight, of which with features that are nowhere negative one sums to less than 0. Batches: by
counts (`fedarena.attacks.reconstruction.helpers.output_labels`). Then DLG's search with labels fixed.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.reconstruction.cards.idlg import Options
from fedarena.attacks.reconstruction.helpers.least_squares import LeastSquares
from fedarena.attacks.reconstruction.helpers.output_labels import output_labels, shown
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View


class IDLG(LeastSquares):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.idlg.Options`."""

    options: Options
    name = "idlg"

    def reason(self, view: View, seen: Observation) -> str:
        if view.criterion.outputs < 2:
            return "labels are read from outputs of classes, but this model has one output"
        if not shown(view, seen):
            return "the gradient of the output layer, from which labels are read, is not seen"
        return ""

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor:
        return output_labels(view, seen, images)
