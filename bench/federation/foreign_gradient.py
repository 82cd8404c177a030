"""Inference attacks on a gradient, or on an update of several steps, that other code than this project's computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.dropout import _DropoutNd

from fedarena.contracts.active_inference import ActiveInference
from fedarena.contracts.inference import Inference, Progress, Reconstruction
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.simulators import LocalUpdate, PlainGradient
from fedarena.contracts.view import Population, View
from fedarena.core import given
from fedarena.core.errors import UnusableAnswer, UserError, type_of
from fedarena.core.given import Numbers
from fedarena.core.global_generators import generators_of
from fedarena.core.options import to_text
from fedarena.core.rng import LARGEST_SEED, Rng
from fedarena.core.tensors import Tensors, single_precision
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.models.architecture import UnusableLayer, with_layer_names
from fedarena.models.module_check import require_fit
from fedarena.problem.loss import LOSSES
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

Gradients = Mapping[str, Numbers | None] | Sequence[Numbers | None]


@dataclass(frozen=True)
class OwnUpload:
    """What a client of any code has sent.

    Attributes:
        task: its model and its local work. params: the model's parameters before it.
        target: the gradient, or the update start − end.
    """

    task: Task
    params: Tensors
    target: Tensors


def guess_behind(
    sent: OwnUpload,
    attack: str,
    options: Mapping[str, Any],
    known: tuple[Numbers | None, tuple[Numbers, Numbers] | None],
    seed: int,
    progress: Progress,
) -> Reconstruction:
    """Guess images as a server does that sees the upload; see `fedarena.api.invert`.

    Args:
        known: the labels, and the samples that the attacker has collected.

    Raises:
        UserError: an attack that cannot start, or that the rest does not fit.
    """
    labels, samples = known
    made = _attack(attack, options, sent.task)
    view = _view(sent, _labels_for(made, attack, labels, sent.task), samples)
    rng = Rng(given.integer("seed", seed, 0, LARGEST_SEED)).child("attack")
    # Fused attention has no second derivative. The view is not sealed: a model need not be one that pickles.
    try:
        with sdpa_kernel(SDPBackend.MATH), generators_of(rng):
            answer: Any = made.taken(made.run(view, rng, progress), view)
    except UnusableAnswer as error:
        raise UserError(f"attack {error}") from None
    except RuntimeError as error:
        if "vmap" not in str(error):
            raise
        raise UserError(
            "model: its forward pass decides by the values that it computes, allowed: the same operations for all "
            "inputs, because the attack differentiates many batches at once"
        ) from None
    if isinstance(answer, NotApplicable):
        raise UserError(f"attack {attack}: {answer.reason}")
    return answer[0]  # type: ignore[no-any-return]


@contextmanager
def with_gradients() -> Iterator[None]:
    """Gradients can be taken in the block, in single precision, whatever the caller has set."""
    with torch.inference_mode(False), torch.enable_grad(), single_precision():
        yield


def view_of(
    model: nn.Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    images: int = 1,
    labels: Numbers | None = None,
    loss: str = "cross-entropy",
) -> View:
    """What a server knows that sees a gradient of a batch's mean loss; arguments are those of `fedarena.api.invert`."""
    sent = read_upload(model, gradients, input_shape, n_classes, images, local_work(images, loss))
    return _view(sent, _labels(labels, sent.task), None)


def local_work(
    images: int, loss: str, local_epochs: int = 0, lr: float | None = None, batch_size: int | None = None
) -> Schedule:
    """How the update came about. Raises UserError for numbers that are missing, or that say nothing of one gradient."""
    if loss not in LOSSES:
        raise UserError(f"loss is {loss!r}, allowed: {', '.join(LOSSES)}")
    n = given.integer("images", images, 1)
    if not given.integer("local_epochs", local_epochs, 0):
        if lr is not None or batch_size is not None:
            raise UserError("lr and batch_size are of local steps, allowed: with local_epochs")
        return Schedule(rounds=1, loss=loss, batch_size=n)
    if lr is None:
        raise UserError(f"local_epochs is {local_epochs}, which needs lr, the rate of the steps")
    b = n if batch_size is None else given.integer("batch_size", batch_size, 1, n)
    if n % b:
        raise UserError(f"batch_size is {b}, allowed: a divisor of the {n} images, since batches are full")
    return Schedule(rounds=1, loss=loss, batch_size=b, local_epochs=local_epochs, lr=given.positive("lr", lr))


def _view(sent: OwnUpload, labels: Tensor | None, samples: tuple[Numbers, Numbers] | None) -> View:
    task = sent.task
    return View(
        threat=Threat("server", "adaptive"),
        reading="gradient",
        input_shape=task.input_shape,
        n_classes=task.n_classes,
        observations=(_observation(task, sent.params, sent.target, labels),),
        output_layer=task.layers[-1][0],
        loss=task.schedule.loss,
        population=None if samples is None else _population(task, samples),
    )


def _population(task: Task, samples: tuple[Numbers, Numbers]) -> Population:
    """Samples of the attacker's own. Raises UserError."""
    if not isinstance(samples, tuple | list) or len(samples) != 2:
        raise UserError(f"samples is {type_of(samples)}, allowed: (inputs, classes)")
    x = given.numbers("inputs of samples", samples[0])
    if not x.is_floating_point():
        kind = str(x.dtype).removeprefix("torch.")
        raise UserError(f"inputs of samples: {kind} values, allowed: floats in the range that the model was trained on")
    if x.numel() and float(x.max()) > 1 and bool((x == x.round()).all()):
        raise UserError(f"inputs of samples: whole numbers up to {float(x.max()):g}, allowed: floats in [0, 1]")
    y = given.class_numbers("classes of samples", samples[1], task.n_classes)
    if x.shape[1:] != task.input_shape or y.shape != x.shape[:1] or not len(y):
        shape = ", ".join(map(str, task.input_shape))
        raise UserError(f"samples have the shapes {list(x.shape)} and {list(y.shape)}, allowed: [k, {shape}] and [k]")
    return Population(x.to(next(task.model.parameters())), y)


def read_upload(
    model: nn.Module, gradients: Gradients, input_shape: Sequence[int], n_classes: int, images: int, schedule: Schedule
) -> OwnUpload:
    """The upload with the model's parameters. Raises UserError for what does not fit together."""
    if not isinstance(model, nn.Module):
        raise UserError(f"model is {type_of(model)}, allowed: an nn.Module")
    if isinstance(model, torch.jit.ScriptModule):
        raise UserError(f"model is {type_of(model)}, allowed: the nn.Module of Python that it was made of")
    if not isinstance(input_shape, Sequence) or isinstance(input_shape, str):
        raise UserError(f"input_shape is {type_of(input_shape)}, allowed: integers, such as (1, 28, 28)")
    own = deepcopy(model)
    task = Task(
        model=with_layer_names(own),
        input_shape=tuple(given.integer("a size of input_shape", size, 1) for size in input_shape),
        n_classes=given.integer("n_classes", n_classes, 1),
        sizes=(images,),
        schedule=schedule,
    )
    params = {n: given.numbers(f"parameter {n} of the model", p).clone() for n, p in task.model.named_parameters()}
    _require_fit(own, task)
    ordered = _in_order(gradients, dict(model.named_parameters()))
    return OwnUpload(task, params, dict(zip(params, ordered, strict=True)))


def _observation(task: Task, params: Tensors, target: Tensors, labels: Tensor | None) -> Observation:
    single = task.schedule.fedsgd
    simulate: Simulator = PlainGradient(task, params, (0,)) if single else LocalUpdate(task, params)
    return Observation(
        round=0,
        clients=(0,),
        images=task.sizes[0],
        target=target,
        simulate=simulate,
        output_bias=task.output_bias if single else None,
        estimate=target,
        labels=labels,
    )


def _labels_for(attack: Inference, name: str, known: Numbers | None, task: Task) -> Tensor | None:
    """The labels that the attack gets. Raises UserError where it needs them, or makes no use of them."""
    labels = _labels(known, task)
    if labels is None and attack.needs_labels:
        raise UserError(f"attack {name}: with these options it is given the labels: pass labels")
    if labels is not None and not attack.needs_labels:
        raise UserError(f"attack {name}: with these options it makes no use of labels: leave them out")
    return labels


def _labels(known: Numbers | None, task: Task) -> Tensor | None:
    if known is None:
        return None
    labels = given.class_numbers("labels", known, task.n_classes)
    if labels.shape != task.sizes:
        raise UserError(f"labels have the shape {list(labels.shape)}, allowed: {list(task.sizes)}, one for each image")
    return labels


def _attack(name: str, options: Mapping[str, Any], task: Task) -> Inference:
    """The attack. Raises UserError for one of another kind or of another package, or options that do not fit."""
    spec = compose.parse_attack(name, {option: to_text(value) for option, value in options.items()})
    kind = compose.attack_class(spec)
    if issubclass(kind, ActiveInference):
        raise UserError(
            f"attack is '{name}', for which a server chooses what it sends, allowed: one on a given gradient"
        )
    if not issubclass(kind, Inference) or kind.goal != "reconstruction":
        raise UserError(f"attack is '{name}', which guesses no images, allowed: an attack after images")
    if compose.foreign("attack", spec):
        raise UserError(f"attack {name} is of another package, whose code does not run in this process")
    made = compose.make_inference(spec)
    made.fit(task)
    return made


def _require_fit(model: nn.Module, task: Task) -> None:
    """Raise UserError for a model that does not take such inputs, or that does not say the same twice."""
    training = [(name or type(model).__name__, m) for name, m in model.named_modules() if m.training]
    for name, m in training:
        what = "keeps numbers of its batches" if any(True for _ in m.buffers(False)) else ""
        if what := "drops units" if isinstance(m, _DropoutNd) and m.p > 0 else what:
            raise UserError(f"model: {name} is in training mode and {what}, allowed: evaluation mode (model.eval())")
    try:
        require_fit(model, task.input_shape, task.criterion.outputs)
    except UnusableLayer as error:
        raise UserError(f"model: its {error}") from None
    if not task.layers:
        raise UserError("model: it has no dense or convolutional layer, allowed: one that ends in such a layer")


def _in_order(gradients: Gradients, params: Mapping[str, Tensor]) -> list[Tensor]:
    """The gradient in the order of the parameters. Raises UserError where it does not fit."""
    if isinstance(gradients, Mapping):
        if odd := sorted(map(str, gradients.keys() ^ params.keys())):
            raise UserError(
                f"gradients and parameters differ in {odd[0]}, allowed: a gradient for each parameter, None for one "
                "that is not used"
            )
        gradients = [gradients[name] for name in params]
    if not isinstance(gradients, list | tuple):
        raise UserError(f"gradients are {type_of(gradients)}, allowed: a list or a tuple of tensors, or a mapping")
    if len(gradients) != len(params):
        raise UserError(f"gradients are {len(gradients)} tensors, allowed: {len(params)}, one for each parameter")
    if all(gradient is None for gradient in gradients):
        raise UserError("gradients are None for all parameters, allowed: at least one tensor")
    ordered = []
    for (name, p), gradient in zip(params.items(), gradients, strict=True):
        g = torch.zeros_like(p) if gradient is None else given.numbers(f"the gradient of {name}", gradient)
        if g.shape != p.shape:
            raise UserError(f"the gradient of {name} has shape {list(g.shape)}, allowed: {list(p.shape)}")
        ordered.append(g.to(p).clone())  # one of inference mode has no further gradients
    return ordered
