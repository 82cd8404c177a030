"""DLG, Deep Leakage from Gradients (Zhu, Liu & Han, NeurIPS 2019, Algorithm 1), through any protocol.

For each observation, find the batch that would have given the same observation:

    min over x' [n, *shape], ℓ [n, classes]   Σ_l ‖simulate(x', softmax ℓ)_l − target_l‖² / Σ_l ‖target_l‖²
                                              + tv·(mean|x'_{i+1,j} − x'_{i,j}| + mean|x'_{i,j+1} − x'_{i,j}|)

from several random starts at once (`torch.func.vmap`), and keep the start that ends lowest. With `labels=inferred`
(iDLG, Zhao et al. 2020) or `labels=given` the labels are fixed, one-hot, and only the images are optimised. The code
shared with other attacks is in `helpers/matching.py` and `helpers/least_squares.py`.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.reconstruction.cards.dlg import Options
from fedarena.attacks.reconstruction.helpers.least_squares import LeastSquares
from fedarena.attacks.reconstruction.helpers.output_labels import infer_labels
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View


class DLG(LeastSquares):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.dlg.Options`."""

    options: Options
    name = "dlg"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_labels = options.labels == "given"

    def reason(self, view: View, seen: Observation) -> str:
        if self.options.labels != "inferred":
            return ""
        if seen.output_bias is None or seen.output_bias not in seen.target:
            return "labels=inferred needs the gradient of the output layer's bias"
        if len(seen.target[seen.output_bias]) != view.n_classes:
            return "labels=inferred compares outputs of classes, but this model has one output"
        return ""

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        if self.options.labels == "optimized":
            return None
        fixed = seen.labels if self.options.labels == "given" else infer_labels(seen, images, view.n_classes, view.loss)
        assert fixed is not None, "the harness gives the labels to an attack that needs_labels"
        return fixed
