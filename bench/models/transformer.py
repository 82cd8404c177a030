"""A small transformer for texts (Vaswani et al. 2017), with low-rank adapters if wanted (Hu et al. 2022, Eq. 3).

    h_0 = E x_t + P_t                 x_t [words] the one-hot code of word t, or any weights of words
    h_l = Block(h_{l−1})              fedarena.models.attention, causal unless the option says otherwise
    logits = W_out · mean_t LN(h_L) + b_out

With `lora` = r, each of q, k, v and o is z ↦ W z + b + B A z, A [r, d], B [d, r]. W and b, the embedding, the
positions and the MLPs are constants that all parties know. Only the A, the B and the output layer are trained and
sent. A is drawn and B begins at 0, so that ∂L/∂A is 0 in the first round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.models.architecture import Architecture, zeroed
from fedarena.models.attention import RATIO, Block, Dense, FixedPositions, Positions, layer_norm
from fedarena.models.cards.transformer import Options


class Frozen(nn.Module):
    """A dense layer of constants: [..., d_in] → W z + b, drawn as PyTorch's own layers are."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, d_in: int, d_out: int, rng: Rng, bias: bool = True) -> None:
        super().__init__()
        generator, bound = rng.torch(), d_in**-0.5
        self.register_buffer("weight", uniform((d_out, d_in), bound, generator))
        self.register_buffer("bias", uniform((d_out,), bound, generator) if bias else None)

    def forward(self, z: Tensor) -> Tensor:
        return F.linear(z, self.weight, self.bias)


class LowRank(nn.Module):
    """A frozen layer and the trained product of two narrow ones: z ↦ W z + b + B A z.

    Attributes:
        a: A [r, d_in]. b: B [d_out, r].
    """

    def __init__(self, frozen: Frozen, rank: int) -> None:
        super().__init__()
        d_out, d_in = frozen.weight.shape
        self.frozen = frozen
        self.a, self.b = nn.Linear(d_in, rank, bias=False), nn.Linear(rank, d_out, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.frozen(z) + self.b(self.a(z))
        return out


class TextClassifier(nn.Module):
    """The whole model; see the module's docstring."""

    def __init__(
        self, embedding: nn.Module, positions: nn.Module, blocks: list[Block], width: int, outputs: int
    ) -> None:
        super().__init__()
        self.embedding, self.positions, self.blocks = embedding, positions, nn.ModuleList(blocks)
        self.norm, self.out = layer_norm(width), nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[n, length, words] → [n, outputs]."""
        h = self.positions(self.embedding(x))
        for block in self.blocks:
            h = block(h)
        out: Tensor = self.out(self.norm(h).mean(-2))
        return out


class Transformer(Architecture):
    """Texts [length, words]."""

    options: Options

    @property
    def warnings(self) -> tuple[str, ...]:
        return ("the frozen weights below the adapters are random, not pretrained",) if self.options.lora else ()

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        if len(input_shape) != 2:
            shown = "x".join(map(str, input_shape))
            raise UserError(f"option 'model' is transformer, which takes texts [length, words]; inputs are {shown}")
        if o.width % o.heads:
            raise UserError(
                f"model transformer: option 'heads' is {o.heads}, allowed: a divisor of the width, {o.width}"
            )
        length, words = input_shape

        def make() -> nn.Module:
            blocks = [self._block(i) for i in range(o.layers)]
            if not o.lora:
                embedding: nn.Module = nn.Linear(words, o.width, bias=False)
                return TextClassifier(embedding, Positions(length, o.width), blocks, o.width, n_classes)
            embedding = Frozen(words, o.width, constants("embedding"), bias=False)
            positions = FixedPositions(uniform((length, o.width), length**-0.5, constants("positions").torch()))
            return TextClassifier(embedding, positions, blocks, o.width, n_classes)

        return zeroed(make)

    def _block(self, i: int) -> Block:
        o = self.options
        block = partial(Block, width=o.width, heads=o.heads, hidden=RATIO * o.width, causal=o.causal)
        if not o.lora:
            return block()
        frozen = _frozen(constants("block", i))
        return block(projection=_adapted(frozen, o.lora), dense=frozen)

    def init(self, module: nn.Module, generator: torch.Generator) -> Tensors:
        """As inherited, but every B is 0."""
        drawn = super().init(module, generator)
        factors = {f"{name}.b.weight" for name, layer in module.named_modules() if isinstance(layer, LowRank)}
        return {name: torch.zeros_like(t) if name in factors else t for name, t in drawn.items()}


def constants(*path: str | int) -> Rng:
    """The stream of frozen weights, which are the same for every seed."""
    return Rng(0).child("transformer", "frozen", *path)


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    """U(±bound)."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


def _frozen(rng: Rng) -> Callable[[int, int], Frozen]:
    """Makes one frozen layer after the other, each with a stream of its own."""
    made = count()
    return lambda d_in, d_out: Frozen(d_in, d_out, rng.child(next(made)))


def _adapted(frozen: Callable[[int, int], Frozen], rank: int) -> Dense:
    return lambda d_in, d_out: LowRank(frozen(d_in, d_out), rank)
