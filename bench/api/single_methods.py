"""One method on what the user has: a rule on uploads, an attack on a gradient. Nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fedarena.api.arguments import listening, named_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame
    from torch import Tensor
    from torch.nn import Module

    from fedarena.contracts.aggregator import Aggregator
    from fedarena.contracts.inference import Inference, Reconstruction
    from fedarena.core.card import Card
    from fedarena.core.given import Numbers
    from fedarena.federation.foreign_gradient import Gradients

    Rule = str | type[Aggregator] | Card
    Arrays = NDArray[Any] | Sequence[NDArray[Any]] | Sequence[Sequence[float]]
    Floats = NDArray[np.floating[Any]]
    Part = TypeVar("Part", Tensor, NDArray[Any])


@overload
def aggregate(
    rule: Rule, uploads: Tensor | Sequence[Tensor], f: int, *, reference: Any = None, seed: int = 0, **options: Any
) -> Tensor: ...
@overload
def aggregate(
    rule: Rule, uploads: Arrays | DataFrame, f: int, *, reference: Any = None, seed: int = 0, **options: Any
) -> Floats: ...
@overload
def aggregate(
    rule: Rule, uploads: Sequence[Mapping[str, Part]], f: int, *, reference: Any = None, seed: int = 0, **options: Any
) -> dict[str, Part]: ...
@overload
def aggregate(
    rule: Rule, uploads: Sequence[Sequence[Part]], f: int, *, reference: Any = None, seed: int = 0, **options: Any
) -> list[Part]: ...
def aggregate(rule: Rule, uploads: Any, f: int, *, reference: Any = None, seed: int = 0, **options: Any) -> Any:
    """What an aggregation rule makes of one round's uploads, apart from any federation.

        fa.aggregate("nnm+krum", np.random.rand(10, 3), f=2)  # an array [3]

    Args:
        rule: a rule by its name (`fa.methods("aggregator")`), one with wrappers before it, WRAPPER+RULE, or a class.
        uploads: n of them, finite real numbers: an array, a tensor or a table [n, d], or a list of n vectors [d], of n
            mappings from names to arrays or tensors, such as state dicts, or of n lists of arrays or tensors. Whole
            numbers are computed as floats.
        f: how many of them the server assumes to be corrupted, 0 to n − 1; most rules allow less.
        reference: what the server's own data give, as one of the uploads, for rules that compare with it (`fltrust`).
        seed: of rules that draw at random.
        options: of the rule and its wrappers, by name, or of one part by its dotted name: `**{"PART.OPTION": 2}`.

    Returns:
        The aggregate, of the kind of one upload: a tensor [d] of floats; an array [d] for arrays, lists of numbers and
        tables; or a mapping or a list with the types of the upload's, whole numbers rounded. A rule with a memory is
        called as in the first round.

    Raises:
        UserError: an unknown rule or option, uploads of different shapes, complex or not finite, or an f that the rule
            does not allow.
    """
    from fedarena.federation import rule_function

    name = named_options({"rule": rule})["rule"]
    return rule_function.aggregate(name, uploads, f, reference=reference, seed=seed, **options)


def invert(
    model: Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    attack: str | type[Inference] | Card = "inverting-gradients",
    images: int = 1,
    labels: Numbers | None = None,
    samples: tuple[Numbers, Numbers] | None = None,
    loss: str = "cross-entropy",
    local_epochs: int = 0,
    lr: float | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool | Callable[[float, str], object] = False,
    **options: Any,
) -> Reconstruction:
    """Guess the images behind a gradient of the mean loss of a batch, which any code computed.

        gradient = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
        fa.invert(model, gradient, input_shape=(1, 8, 8), n_classes=10).images

    Args:
        model: takes inputs `[n, *input_shape]` in [0, 1]; the gradient was taken at its parameters.
        gradients: tensors or arrays, by name, or in the order of `model.parameters()`; None for a parameter
            that is not used. With local_epochs: the update, start − end.
        input_shape: images [channels, height, width]; it and all after it go by name. n_classes: outputs of the model.
        attack: one whose goal is reconstruction (`fa.methods("attack")`), by its name, or a class.
        images: samples behind the gradient. labels: their classes [images], where the attacker knows them.
        samples: inputs `[k, *input_shape]` and classes [k] that the attacker has collected; None: it has no prior.
        loss: cross-entropy, mse or regression.
        local_epochs, lr, batch_size: how plain SGD made an update. By default it is one gradient, of one batch.
        seed: of what the attack draws. progress: True: a bar on stderr; a function in its place is called with the
            share done (float), and what the search is doing (str). What it raises ends the search.
        options: the attack's own, such as iterations=500 (`bench show NAME`).

    Returns:
        The guess: `images`, `labels`, and the search's own distance `match`; `fa.metrics` compares it with the truth.

    Raises:
        UserError: input that does not fit together, or an attack that cannot start.
    """
    from fedarena.federation.foreign_gradient import guess_behind, local_work, read_upload, with_gradients

    with with_gradients(), listening(progress) as told:
        work = local_work(images, loss, local_epochs, lr, batch_size)
        sent = read_upload(model, gradients, input_shape, n_classes, images, work)
        name = named_options({"attack": attack})["attack"]
        return guess_behind(sent, name, options, (labels, samples), seed, told)
