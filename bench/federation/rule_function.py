"""An aggregation rule as a function of arrays, apart from any federation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Call
from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import UserError
from fedarena.core.options import to_text
from fedarena.core.rng import Rng
from fedarena.federation import compose


def aggregate(
    rule: str,
    uploads: Any,
    f: int,
    *,
    reference: Any = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """What a rule makes of one round's uploads.

    Args:
        rule: a rule by its name, or one with wrappers before it: WRAPPER+RULE.
        uploads: an array or a tensor [n, d], or a list of n mappings from names to arrays or tensors, such as state
            dicts.
        f: how many of them the server assumes to be corrupted.
        reference: the upload that the server's own data give, for rules that compare with it: [d], or a mapping.
        seed: of rules that draw at random.
        options: of the rule and its wrappers, by name, or of one part by its dotted name: `**{"PART.OPTION": 2}`.

    Returns:
        The aggregate, of the kind of one upload: an array or a tensor [d], or a mapping. A rule with a memory is called
        as in the first round.

    Raises:
        UserError: an unknown rule or option, uploads of different shapes or that are not finite, or an f that the rule
            does not allow.
    """
    made = rule_by_name(rule, options)
    rows, shapes = _rows(uploads)
    if not bool(torch.isfinite(rows).all()):
        raise UserError("uploads have values that are not finite, allowed: finite numbers")
    if not 0 <= f < len(rows):
        raise UserError(f"f is {f}, allowed: 0 to {len(rows) - 1}")
    made.check(len(rows), f)
    if made.auxiliary and reference is None:
        raise UserError(f"rule '{rule}' compares with an upload of the server's own data: give reference")
    own = None if reference is None else _rows([reference])[0][0].to(rows)
    call = Call(
        weights=torch.ones(len(rows)),
        f=f,
        memory={},
        rng=Rng(seed),
        reference=None if own is None else lambda: own,
        shapes=shapes,
    )
    return _like(made(rows, call).vector, uploads[0])


def rule_by_name(name: str, options: Mapping[str, Any]) -> Aggregator:
    """A rule with its wrappers, from values of options. Raises UserError."""
    spec = compose.parse_defense(name, {option: to_text(value) for option, value in options.items()})
    made = compose.make_rule(spec.rest)
    if made is None or spec.name != BASELINE:
        raise UserError(
            f"rule is '{name}', allowed: an aggregation rule, or WRAPPER+RULE (see `bench list aggregator`)"
        )
    return made


def _rows(uploads: Any) -> tuple[Tensor, tuple[tuple[int, ...], ...]]:
    """Uploads as rows [n, d], and the shapes of the tensors that a row is made of."""
    if isinstance(uploads, Tensor | np.ndarray):
        if uploads.ndim != 2 or not len(uploads):
            raise UserError(f"uploads have the shape {list(uploads.shape)}, allowed: [n, d] with n at least 1")
        return _real(torch.as_tensor(uploads)), ()
    if not uploads:
        raise UserError("uploads are empty, allowed: at least one")
    if not isinstance(uploads[0], Mapping):
        return _rows(torch.stack([torch.as_tensor(one) for one in uploads]))
    shapes = {name: tuple(np.shape(t)) for name, t in uploads[0].items()}
    for i, one in enumerate(uploads):
        if {name: tuple(np.shape(t)) for name, t in one.items()} != shapes:
            raise UserError(f"upload {i} has other names or shapes than upload 0, allowed: the same in all")
    flat = [torch.cat([_real(torch.as_tensor(one[name])).flatten() for name in shapes]) for one in uploads]
    return torch.stack(flat), tuple(shapes.values())


def _real(t: Tensor) -> Tensor:
    return t.detach() if t.is_floating_point() else t.float()


def _like(vector: Tensor, one: Any) -> Any:
    """A vector [d] as what one upload is."""
    if isinstance(one, Mapping):
        parts = vector.split([int(np.prod(np.shape(t))) for t in one.values()])
        return {name: _as(part.reshape(np.shape(t)), t) for (name, t), part in zip(one.items(), parts, strict=True)}
    return _as(vector, one)


def _as(t: Tensor, like: Any) -> Any:
    return t.to(like.dtype) if isinstance(like, Tensor) else t.numpy().astype(np.asarray(like).dtype)
