"""Labels from the output layer, for attacks that go on to search for the images with labels fixed (iDLG)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.labels.last_layer_label import name_classes, showing
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View


def shown(view: View, seen: Observation) -> str:
    """Where the labels can be read: in the output layer's `bias` as seen, in the `rows` of its weight as seen or
    estimated, or in its estimated bias (`estimate`); empty: nowhere."""
    if seen.output_bias is not None and len(seen.target.get(seen.output_bias, ())) == view.n_classes > 1:
        return "bias"
    for name, where in ((f"{view.output_layer}.bias", "estimate"), (f"{view.output_layer}.weight", "rows")):
        source = showing(seen, name)
        if source is not None and len(source[name]) == view.n_classes > 1:
            return where
    return ""


def fixed_labels(source: str, view: View, seen: Observation, images: Tensor) -> Tensor | None:
    """The labels [n] of a search by an attack's option `labels`; None: they are searched for with the samples.

    Args:
        source: `given`; `inferred` from the output layer, where it is seen; or `optimized`.
        images: as for `output_labels`.
    """
    if source == "given":
        assert seen.labels is not None, "the harness gives the labels to an attack that needs_labels"
        return seen.labels
    if source == "optimized" or not shown(view, seen):
        return None
    return output_labels(view, seen, images)


def output_labels(view: View, seen: Observation, images: Tensor) -> Tensor:
    """The labels [n] (int64), read from the place that `shown` returns.

    A bias as seen is read by `infer_labels`. Rows (sums of the weight over features that are nowhere negative) and
    estimated biases are read by `fedarena.attacks.labels.last_layer_label.name_classes`.

    Args:
        images: candidates [m, n, *shape] that stand in for the unknown predictions.
    """
    where = shown(view, seen)
    if where == "bias":
        return infer_labels(seen, images, view.n_classes, view.loss)
    name = f"{view.output_layer}.{'bias' if where == 'estimate' else 'weight'}"
    source = showing(seen, name)
    assert source is not None, "called only if labels are shown"
    s = source[name] if where == "estimate" else source[name].sum(1)
    # The unit by which a label moves s, from the mean of Σ_c (n_c/n − 1/C)² over draws of labels.
    unit = float(s.double().norm()) * (seen.images / (1 - 1 / len(s))) ** 0.5
    return name_classes(s, seen.images, unit).to(s.device)


def infer_labels(seen: Observation, images: Tensor, classes: int, loss: str = "cross-entropy") -> Tensor:
    """Labels [n] from the output bias, whose gradient is the mean of softmax − label.

    Batch 1: the one class whose entry is negative, argmin_c (iDLG, Zhao et al. 2020). Larger batches: greedy
    counts. The random candidates `images` with uniform labels stand in for the unknown predictions, so that
    their output bias less the observed one is about u·(n_c/n − 1/classes), n_c being the count of class c;
    n times, the class with the largest remainder is named and its remainder lowered by u/n. The unit u is 1
    for gradients. For updates it is how far a candidate's own labels move its output bias. One sample of a squared
    error is treated in the same way: outputs are no probabilities, so other entries than the class's may be negative.
    """
    name = seen.output_bias
    assert name is not None
    n, observed = seen.images, seen.target[name]
    if n == 1 and loss == "cross-entropy":
        return observed.argmin().reshape(1)

    def bias(labels: Tensor) -> Tensor:
        y = labels.to(observed).expand(n, classes)
        return torch.stack([seen.simulate(x, y)[name] for x in images]).mean(0)

    first = F.one_hot(observed.new_zeros((), dtype=torch.int64), classes)
    uniform = torch.full_like(observed, 1 / classes)
    predicted = bias(uniform)
    unit = (predicted - bias(first))[0] * classes / (classes - 1)
    remainder, named = predicted - observed, []
    for _ in range(n):
        named.append(remainder.argmax())
        remainder = remainder - F.one_hot(named[-1], classes) * unit / n
    return torch.stack(named)
