"""DAGER: the texts of a batch are read off the gradients of two layers of attention, exactly.

The rows of ∂L/∂W_q lie in the span of what entered the layer (`helpers/attention_inputs.py`). While a batch has fewer
different inputs than the width d, hardly any other vector lies in it (Petrov et al. 2024, Section 5.1):

1. Into the first layer go z = LN(E_w + P_t), a function of a word w and its place t alone. The words whose z lies in
   the span of layer 1 are candidates for place t (Algorithm 1). Sums of a word and a place lie in it, too, when the
   batch has the word at another place.
2. Into the second layer of a causal model goes, at place t, a function of the first t words alone. Beginnings of texts
   are continued by each candidate, and those continuations are kept whose input lies in the span of layer 2
   (Algorithm 2).

The distance of z from a span is ‖z − Pz‖/‖z‖. If it is below `tolerance`, the check is passed. If fewer beginnings pass
than the batch has texts, the nearest others are continued too, so that there is a guess under noise.

With features F = [f_k, 1] of the texts found, the output layer's gradient is G = S F with S [classes, n]. Its column k
is a positive multiple of softmax − label of text k, in which the label alone has a negative entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.reconstruction.cards.dager import Options
from fedarena.attacks.reconstruction.helpers.attention_inputs import KnownModel, Span, known_model, span_of
from fedarena.attacks.reconstruction.helpers.first_layers import inputs_of
from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.attacks.reconstruction.helpers.read_each import read_each
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import targets

FEW = 8
"""Beginnings that are continued at least, even if none passes the check."""
NEAREST = 32
"""Words that are tried at a place where none passes the check."""
CHUNK = 2048
"""Texts that go through the model at once."""


class Dager(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.dager.Options`."""

    options: Options

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread("dager", o.victims, o.start, o.window, schedule)

    def unreadable(self, seen: Observation) -> str:
        known = known_model(seen)
        return known if isinstance(known, str) else ""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        return read_each(view, lambda seen, i: self.reconstruct(view, seen), progress)

    def reconstruct(self, view: View, seen: Observation) -> Reconstruction | str:
        """The texts behind one observation, or why they cannot be read."""
        known, o = known_model(seen), self.options
        if isinstance(known, str):
            return known
        if not seen.images:
            return "no text is behind what was seen"
        first, second = (span_of(known.seen_of(seen.target, i), seen.noise_std, o.rank_tolerance) for i in (0, 1))
        if isinstance(first, str) or isinstance(second, str):
            return first if isinstance(first, str) else str(second)
        search = Search(known, first, second, seen.images, o)
        x = search.texts().to(next(iter(seen.target.values())))
        labels = labels_of(view, known, seen.target, x)
        match = relative_squares(seen.target)(seen.simulate(x, targets(labels, view.n_classes, x)))
        return Reconstruction(x, labels, float(match), evaluations=1)


@dataclass(frozen=True)
class Search:
    """The search for the n texts of a batch.

    Attributes:
        first, second: the spans of what entered the first two layers of attention.
    """

    known: KnownModel
    first: Span
    second: Span
    n: int
    options: Options

    def texts(self) -> Tensor:
        """The n texts that pass the checks best, as one-hot codes [n, length, words]."""
        length, words = self.known.task.input_shape
        candidates = self.candidates()
        codes, passed, score = (
            torch.zeros(1, length, dtype=torch.int64),
            torch.ones(1, dtype=torch.bool),
            torch.zeros(1),
        )
        for t in range(length):
            named = candidates[t]
            codes = codes.repeat_interleave(len(named), 0)
            codes[:, t] = named.repeat(len(codes) // len(named))
            distance = self.distances(codes, t)
            score = score.repeat_interleave(len(named)) + distance.square()
            passed = passed.repeat_interleave(len(named)) & (distance < self.options.tolerance)
            order = (score + length * ~passed).argsort(stable=True)  # each square is at most 1
            kept = order[: max(self.n, FEW, min(int(passed.sum()), self.options.beam))]
            if int(passed.sum()) >= self.n:
                kept = kept[passed[kept]]
            codes, passed, score = codes[kept], passed[kept], score[kept]
        chosen = codes[torch.arange(self.n) % len(codes)]  # a text that stands in the batch twice is found once
        return F.one_hot(chosen, words)

    def candidates(self) -> list[Tensor]:
        """The words [k] that pass the check of the first layer at each place, the nearest first."""
        length, words = self.known.task.input_shape
        everywhere = torch.eye(words)[:, None].expand(words, length, words)
        distance = self.first.distance(self.known.inputs(0, everywhere)).cpu()
        order = distance.argsort(dim=0, stable=True)
        passing = (distance < self.options.tolerance).sum(0).tolist()
        return [order[: passing[t] or NEAREST, t] for t in range(length)]

    def distances(self, codes: Tensor, t: int) -> Tensor:
        """The distance of what enters the second layer at place t from its span, [m] for texts [m, length]."""
        words = self.known.task.input_shape[1]
        parts = (self.known.inputs(1, F.one_hot(part, words).float())[:, t] for part in codes.split(CHUNK))
        return torch.cat([self.second.distance(z) for z in parts]).cpu().float()


def labels_of(view: View, known: KnownModel, target: Tensors, x: Tensor) -> Tensor:
    """The classes [n] of texts [n, length, words] from the output layer's gradient; 0 where it is not seen."""
    weight = target.get(f"{view.output_layer}.weight")
    if weight is None or len(weight) != view.n_classes:
        return torch.zeros(len(x), dtype=torch.int64, device=x.device)
    features, gradient = inputs_of(known.task, known.params, view.output_layer, x).double(), weight.double()
    bias = target.get(f"{view.output_layer}.bias")
    if bias is not None:
        features = torch.cat([features, torch.ones_like(features[:, :1])], 1)
        gradient = torch.cat([gradient, bias.double()[:, None]], 1)
    labels: Tensor = (gradient @ torch.linalg.pinv(features)).argmin(0)
    return labels
