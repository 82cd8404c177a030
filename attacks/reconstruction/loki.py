"""LOKI: a server's kernels keep the clients of a secure sum apart, and a dense layer sorts their samples into bins.

Each client gets kernels that pass its pixels on in one block of channels, and leave all other blocks at 0
(`helpers/identity_kernels.py`; Zhao et al. 2024, Section IV). The dense layer behind them is that of `imprint`. The sum
of the clients' gradients is then, with δ_u(x) = ∂L/∂z_u and the inputs a = g·x of block k,

    ∂L/∂W_u = Σ_{c in block k} Σ_x δ_u(x) g xᵀ   in the columns of block k,   and   Σ_{c in block k} Σ_x δ_u(x) 2g

in those of its constant channel. So bins are read of each block alone, as `imprint` reads them of all clients together.
With as many blocks as clients, a sample shares its bin with samples of its own client only.

After local steps the same holds of the sum of their gradients, as long as a step changes neither the kernels nor what
sorts samples nor the second layer's columns, which are all alike. Let kernels be g, the outputs z of the first dense
layer of the order ζ, and the second layer's columns v. For a learning rate η, the relative change in a step is then

    of columns ∝ η ζ/v,    of the first dense layer ∝ η v g²/ζ,    of kernels ∝ η v ζ/g²

up to factors of the model. With ζ = v = g² all but the first fall with g², and units of neighbouring bins differ in the
first by little. With g far below 0.005 the updates are lost in the rounding of the weights that they are taken from.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedarena.attacks.reconstruction.cards.loki import Options
from fedarena.attacks.reconstruction.helpers.first_layer import FirstLayer
from fedarena.attacks.reconstruction.helpers.first_layers import inputs_of
from fedarena.attacks.reconstruction.helpers.identity_kernels import blocks_of, codes, columns, layout_of
from fedarena.attacks.reconstruction.helpers.read_each import matched_labels, read_each
from fedarena.attacks.reconstruction.imprint import bins, imprinted
from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.inference import Guess, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task, targets

ORDERED = 16
"""The largest batch whose labels are put in order."""
SAMPLES = 64
"""Own samples by which the preparation of pixels is found."""


class Loki(ActiveInference):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.loki.Options`."""

    options: Options
    name = "loki"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = True  # for thresholds

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread(self.name, o.victims, o.start, o.window, schedule)

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        task, params, own = opportunity.protocol.task, dict(opportunity.state.params), opportunity.population
        assert own is not None, "declared by `needs_population`"
        readers = opportunity.readable
        blocks = blocks_of(task, params, len(readers), own.x[:SAMPLES])
        if isinstance(blocks, NotApplicable):
            return blocks
        names = dense_after(task, len(blocks.layers))
        if isinstance(names, NotApplicable):
            return names
        gain = self.options.gain
        passing = {**params, **blocks.kernels(params, 0, gain)}
        if why := lost(task, passing, names[0], gain):
            return NotApplicable(why)
        inputs = inputs_of(task, passing, names[0], own.x) / gain
        crafted = shrunk(imprinted(passing, *names, inputs, rng), names, gain)
        of_block = [
            opportunity.message({**crafted, **blocks.kernels(params, k, gain)}, rng.child("broadcast", k))
            for k in range(blocks.count)
        ]
        messages = dict.fromkeys(opportunity.participants, of_block[0])
        messages |= {client: of_block[i % blocks.count] for i, client in enumerate(readers)}
        return Bait(messages, readers)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        return read_each(view, lambda seen, i: self.reconstruct(view, seen), progress)

    def reconstruct(self, view: View, seen: Observation) -> Reconstruction | str:
        """The samples of the fullest bins of all blocks; or why nothing can be read."""
        assert seen.sent is not None, "set for attacks that choose what is sent"
        weight = next(name for name, p in seen.sent.items() if name.endswith(".weight") and p.dim() == 2)
        layer = FirstLayer(weight, weight.removesuffix("weight") + "bias")
        if any(seen.target.get(name, torch.empty(0)).shape != seen.sent[name].shape for name in (weight, layer.bias)):
            return "what was seen has no gradient of the dense layer behind the convolutions"
        gain, rows, d = self.options.gain, layer.rows(seen.target), torch.Size(view.input_shape).numel()
        played = torch.stack([played_row(view, seen, layer, code) for code in codes(d)])
        layout = layout_of(seen.sent, played, d, gain)
        if layout is None:
            return "the pixels of a sample that is played through the protocol are not in the dense layer's gradient"
        whole = rows.shape[1] // layout.inputs * layout.inputs
        blocks = rows[:, :whole].split(layout.inputs, dim=1)
        read = [bins(of) for of in (layout.rows(block, rows[:, -1], gain) for block in blocks) if bool(of[:, -1].any())]
        if not read:
            return "the dense layer's gradient is 0"
        together = torch.cat(read)
        order = together[:, -1].abs().argsort(descending=True)[: seen.images]
        samples = together[order, :-1] / together[order, -1:]
        n, like = seen.images, seen.target[weight]
        blind = n - len(samples)
        grey_ones = samples.new_full((blind, samples.shape[1]), 0.5)
        x = torch.cat([samples, grey_ones]).to(like).reshape(n, *view.input_shape)
        labelled = matched_labels(view, seen, x, in_order=n <= ORDERED)
        return Reconstruction(x, labelled.labels, labelled.match, labelled.evaluations + 1, blind)


def played_row(view: View, seen: Observation, layer: FirstLayer, sample: Tensor) -> Tensor:
    """The strongest row [inputs + 1] of what would have been seen of copies of a sample: a multiple of the inputs."""
    like = seen.target[layer.weight]
    images = sample.to(like).reshape(1, *view.input_shape).expand(seen.images, *view.input_shape)
    label = torch.zeros(seen.images, dtype=torch.int64, device=like.device)
    rows = layer.rows(seen.simulate(images, targets(label, view.n_classes, like)))
    return rows[rows[:, -1].abs().argmax()]


def dense_after(task: Task, convolutions: int) -> tuple[str, str] | NotApplicable:
    """The names of the two dense layers with biases that follow the convolutions; or why there are none."""
    following = task.layers[convolutions : convolutions + 2]
    if len(following) < 2 or any(not isinstance(one, nn.Linear) or one.bias is None for _, one in following):
        return NotApplicable(
            "the convolutions are not followed by two dense layers with biases, which this attack sets"
        )
    return following[0][0], following[1][0]


def lost(task: Task, params: Tensors, dense: str, gain: float) -> str:
    """Why the pixels of a sample are not among what enters the dense layer; empty if they are."""
    d = torch.Size(task.input_shape).numel()
    entering = inputs_of(task, params, dense, codes(d).float().reshape(-1, *task.input_shape))
    if columns(entering.double() / gain, d) is not None:
        return ""
    return "a pooling, a norm or another function than a ReLU changes pixels on their way to the dense layer"


def shrunk(params: Tensors, dense: tuple[str, str], gain: float) -> Tensors:
    """An imprint of inputs without the gain → of inputs with it, with outputs z and columns of the order g²."""
    first, second = dense
    units = len(params[f"{first}.weight"])
    return {
        **params,
        f"{first}.weight": params[f"{first}.weight"] * gain,
        f"{first}.bias": params[f"{first}.bias"] * gain**2,
        f"{second}.weight": params[f"{second}.weight"] * gain**2 * units,
    }
