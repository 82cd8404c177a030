"""R-GAP (Zhu & Blaschko, ICLR 2021): a single sample by linear equations, from the last layer to the first, no search.

The output layer's gradient is δ hᵀ with its input h and the residual δ = ∂L/∂z. From there on, for each layer i,

    z_i = a⁻¹(h),   δ_i = (W_{i+1}ᵀ δ_{i+1}) ∘ a′(z_i)              the activation, undone
    W_i x = z_i − b_i,   ∂L/∂W_i = Σ_p δ_i[p] patch_p(x)ᵀ             equations for its input x, which is the next h

(Algorithm 1; Eq. 6 to 15). A ReLU tells z_i where it is active, and δ_i is 0 elsewhere. A dense layer with a bias tells
its δ_i itself. If a layer's equations have a lower rank than x has entries, x is not determined, and all layers before
it would be solved from a wrong one: the attack does not apply (the paper's rank analysis).

Without a bias the output layer tells δ up to a factor, δ = s u. It is the s at which softmax(W h/s) − label = s u, with
the largest entry below 0 at the label (cross-entropy alone).
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from fedarena.attacks.reconstruction.cards.r_gap import Options
from fedarena.attacks.reconstruction.helpers.layer_chain import Chain, Link, chain_of
from fedarena.attacks.reconstruction.helpers.layer_input import Rank, backward, convolution_input, dense_input
from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.attacks.reconstruction.helpers.plain_upload import PlainUpload, plain_upload
from fedarena.attacks.reconstruction.helpers.read_each import read_each
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import targets

SCALES, DECADES = 4000, 8
"""Values of s that are tried, and over how many decades below the largest that a residual can have."""


class RGap(Inference):
    """The attack; see the module's docstring."""

    options: Options
    name: ClassVar[str] = "r-gap"

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread(self.name, o.victims, o.start, o.window, schedule)

    def unreadable(self, seen: Observation) -> str:
        if seen.images != 1:
            return f"{seen.images} samples are behind what was seen of a round, and r-gap solves for one"
        return ""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        return read_each(view, lambda seen, i: self.reconstruct(view, seen, rng.child(self.name, i)), progress)

    def reconstruct(self, view: View, seen: Observation, rng: Rng) -> Reconstruction | str:
        """The sample behind one observation, or why it cannot be had."""
        if reason := self.unreadable(seen):
            return reason
        upload = plain_upload(seen, rng)
        if isinstance(upload, str):
            return upload
        chain = chain_of(upload.task.model, view.input_shape)
        if isinstance(chain, str):
            return chain
        solved = solve(upload, chain)
        if isinstance(solved, str):
            return solved
        like = next(iter(seen.target.values()))
        x, target = solved[0].reshape(1, *view.input_shape).to(like), solved[1][None].to(like)
        labels = view.criterion.classes(target) if view.n_classes else target[:, 0].clamp(0, 1)
        again = seen.simulate(x.clamp(0, 1), targets(labels, view.n_classes, like))
        return Reconstruction(x, labels, float(relative_squares(seen.target)(again)), 1)


def solve(upload: PlainUpload, chain: Chain) -> tuple[Tensor, Tensor] | str:
    """The sample [...] and its target [outputs] as the loss has it, in double precision; or why there is none."""
    params, gradient = precise(upload.params), precise(upload.gradient)
    after = chain.links[-1]
    read = output(after, params, gradient, upload.task.criterion)
    if isinstance(read, str):
        return read
    x, delta, target = read
    for link in chain.links[-2::-1]:
        h = x.reshape(link.out)
        slope = link.activation.slope(h)
        delta = backward(after.layer, params[f"{after.name}.weight"], delta, after.shape).reshape(link.out) * slope
        found = entering(link, params, gradient, link.activation.undo(h), slope, delta)
        if isinstance(found, str):
            return found
        (x, delta), after = found, link
    return x * chain.std + chain.mean, target


def precise(tensors: Tensors) -> Tensors:
    """The same in double precision, on the CPU, which has the solvers."""
    return {name: t.detach().cpu().double() for name, t in tensors.items()}


def entering(
    link: Link, params: Tensors, gradient: Tensors, z: Tensor, slope: Tensor, delta: Tensor
) -> tuple[Tensor, Tensor] | str:
    """The input x of a layer inside the chain, and its δ; or why x is not determined."""
    weight, bias = params[f"{link.name}.weight"], params.get(f"{link.name}.bias")
    if isinstance(link.layer, nn.Linear):
        delta = delta if bias is None else gradient[f"{link.name}.bias"]
        if not bool(delta.any()):
            return f"the gradient of layer {link.name} is 0"
        return dense_input(gradient[f"{link.name}.weight"], delta), delta
    if bias is not None:
        z = z - bias[:, None, None]
    x, rank = convolution_input(link.layer, link.shape, weight, gradient[f"{link.name}.weight"], z, slope, delta)
    return undetermined(link.name, rank) if x is None else (x, delta)


def undetermined(name: str, rank: Rank) -> str:
    """Why the input of a layer is not determined."""
    return (
        f"layer {name} has {rank.rank} independent equations for {rank.unknowns} inputs ({rank.by_weights} weight and "
        f"{rank.by_gradient} gradient constraints): {rank.open} directions are left open"
    )


def output(link: Link, params: Tensors, gradient: Tensors, criterion: Criterion) -> tuple[Tensor, Tensor, Tensor] | str:
    """Of the output layer: its input h, the residual δ, and the target [outputs]; or why they cannot be told."""
    if not isinstance(link.layer, nn.Linear):
        return "the output layer is convolutional"
    weight, g = params[f"{link.name}.weight"], gradient[f"{link.name}.weight"]
    if not bool(g.any()):
        return "the output layer's gradient is 0"
    bias = params.get(f"{link.name}.bias")
    if bias is not None:
        delta = gradient[f"{link.name}.bias"]
    elif criterion.loss == "cross-entropy":
        delta = residual(weight, g)
    else:
        return f"the output layer has no bias, and without one loss={criterion.loss} does not tell the residual"
    h = dense_input(g, delta)
    z = weight @ h + (0 if bias is None else bias)
    prediction = z.softmax(0) if criterion.loss == "cross-entropy" else z
    return h, delta, prediction - delta


def residual(weight: Tensor, gradient: Tensor) -> Tensor:
    """δ [classes] of cross-entropy from the gradient δ hᵀ of an output layer without a bias.

    Both signs of the strongest direction u are tried with many lengths s, and the best is refined.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and only needed here

    left, sizes, right = torch.linalg.svd(gradient, full_matrices=False)
    best: Tensor
    best, least = left[:, 0], math.inf
    for sign in (1, -1):
        u, logits = sign * left[:, 0], sign * sizes[0] * weight @ right[0]
        label = int(u.argmin())
        others = torch.arange(len(u)) != label

        def off(log_s: Tensor, u: Tensor = u, logits: Tensor = logits, others: Tensor = others) -> Tensor:
            """‖(softmax(W h) − label)/s − u‖²; entries off the label are kept from cancelling with it."""
            s = log_s.exp()[..., None]
            p = (logits / s).softmax(-1)[..., others] / s
            return (p - u[others]).square().sum(-1) + (p.sum(-1) + u[~others]).square()

        longest = -math.log(max(float(-u.min()), torch.finfo(u.dtype).tiny))  # the label's entry of δ is above −1
        tried = torch.linspace(longest - DECADES * math.log(10), longest, SCALES, dtype=u.dtype)
        at, step = tried[off(tried).argmin()], float(tried[1] - tried[0])
        found = minimize_scalar(
            lambda t, off=off: float(off(torch.tensor(t, dtype=torch.float64))),
            bounds=(float(at) - step, float(at) + step),
            method="bounded",
            options={"xatol": 1e-12},
        )
        if found.fun < least:
            best, least = u * math.exp(found.x), found.fun
    return best
