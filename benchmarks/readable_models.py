"""The models of `read_beside_breaching.py`, in plain PyTorch."""

from __future__ import annotations

import torch
from invert_beside_breaching import CLASSES
from torch import Tensor, nn


def linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, CLASSES))


def dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 256), nn.ReLU(), nn.Linear(256, CLASSES))


def recursive() -> nn.Module:
    """As breaching's `cnn6`, for images of 16 by 16."""
    layers: list[nn.Module] = []
    sizes = ((3, 12, 4, 2, 2), (12, 20, 3, 2, 1), (20, 36, 3, 1, 1), (36, 64, 3, 1, 1))
    for before, after, kernel, stride, pad in sizes:
        layers += [nn.Conv2d(before, after, kernel, stride, pad, bias=False), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1], nn.Flatten(), layers[-1], nn.Linear(1600, CLASSES))


class Attention(nn.Module):
    """Multi-head attention with one layer for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out


class Block(nn.Module):
    """A transformer block; without `usual` its attention has neither a norm before it nor a shortcut."""

    def __init__(self, width: int, usual: bool) -> None:
        super().__init__()
        self.attn, self.usual = Attention(width, 6), usual
        self.norm1, self.norm2 = nn.LayerNorm(width) if usual else nn.Identity(), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.attn(self.norm1(x))
        if not self.usual:
            out: Tensor = self.mlp(self.norm2(mixed))
            return out
        x = x + mixed
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, side, stride=side)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.proj(x).flatten(2).transpose(1, 2)
        return out


class Vit(nn.Module):
    """A vision transformer of two blocks, whose parts have the names that breaching looks for."""

    def __init__(self, usual: bool, width: int = 384, side: int = 8) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) / 50)
        self.pos_embed = nn.Parameter(torch.randn(1, (32 // side) ** 2 + 1, width) / 50)
        self.patch_embed = Patches(width, side)
        self.blocks = nn.Sequential(Block(width, usual), Block(width, usual=True))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), patches], 1) + self.pos_embed
        out: Tensor = self.head(self.norm(self.blocks(tokens)[:, 0]))
        return out


class Inside(nn.Module):
    """A model under the name `model`, as breaching has it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.model(x)
        return out


class Words(nn.Embedding):
    """An embedding of words as one-hot codes."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Notes(nn.Module):
    """A classifier of notes, one-hot codes [n, length, words]."""

    def __init__(self, length: int, words: int, classes: int, width: int = 32) -> None:
        super().__init__()
        self.encoder = Words(words, width)
        self.place = nn.Parameter(torch.randn(length, width))
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.out = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.layer(self.encoder(x) + self.place).mean(1))
        return out
