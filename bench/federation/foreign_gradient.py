"""Inference attacks on a gradient, or on an update of several steps, that other code than this project's computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedarena.contracts.inference import Inference, Reconstruction
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.simulators import PlainGradient, as_batch
from fedarena.contracts.view import Population, View
from fedarena.core.errors import UserError
from fedarena.core.options import to_text
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.problem.local_training import upload
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

Gradients = Mapping[str, Tensor] | Sequence[Tensor]


@dataclass(frozen=True)
class LocalUpdate:
    """Simulator: start − end of the local steps that a candidate batch gives, in its order in every epoch."""

    task: Task
    params: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return upload(self.task.loss, self.params, as_batch(self.task, x, y), self.task.schedule)


def invert(
    model: nn.Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    attack: str,
    images: int = 1,
    labels: Sequence[int] | Tensor | None = None,
    samples: tuple[Tensor, Tensor] | None = None,
    loss: str = "cross-entropy",
    local_epochs: int = 0,
    lr: float | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: Callable[[float, str], None] = lambda share, text: None,
    **options: Any,
) -> Reconstruction:
    """Guess the images behind a gradient of the mean loss of a batch, as a server does that sees it.

    Nothing is compared with the truth here; `fa.metrics.reconstruction` does that.

    Args:
        model: takes inputs `[n, *input_shape]` in [0, 1]; the gradient was taken at its parameters.
        gradients: by name, or in the order of `model.parameters()`. With local_epochs: the update, start − end.
        input_shape: images [channels, height, width]. n_classes: outputs of the model.
        attack: one after images, by its name (`fa.methods("attack")`). options: its options.
        images: samples behind the gradient. labels: their classes, where the attacker knows them.
        samples: inputs and classes that the attacker has collected. Without them an attack has no prior.
        local_epochs, lr, batch_size: how an update came about, by plain SGD. By default it is one gradient.

    Returns:
        The guess, and the search's own distance `match`.

    Raises:
        UserError: input that does not fit together, or an attack that cannot start.
    """
    steps = _steps(loss, images, local_epochs, lr, batch_size)
    task = _task(model, tuple(input_shape), n_classes, images, steps)
    params = _parameters(task, model)
    made = _attack(attack, options, task)
    seen = _observation(task, params, _named(gradients, params), _labels_for(made, attack, labels, images))
    # Fused attention has no second derivative. The view is not sealed: a model need not be one that pickles.
    with sdpa_kernel(SDPBackend.MATH):
        answer: Any = made.run(_view(task, seen, samples), Rng(seed).child("attack"), progress)
    if isinstance(answer, NotApplicable):
        raise UserError(f"attack {attack}: {answer.reason}")
    return answer[0]  # type: ignore[no-any-return]


def view_of(
    model: nn.Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    images: int = 1,
    labels: Sequence[int] | Tensor | None = None,
    loss: str = "cross-entropy",
) -> View:
    """What a server knows that sees a gradient of the mean loss of a batch. The arguments are those of `invert`."""
    task = _task(model, tuple(input_shape), n_classes, images, _steps(loss, images, 0, None, None))
    params = _parameters(task, model)
    return _view(task, _observation(task, params, _named(gradients, params), _labels(labels, images)), None)


def _steps(loss: str, images: int, local_epochs: int, lr: float | None, batch_size: int | None) -> Schedule:
    """How the update came about. Raises UserError for numbers that are missing, or that say nothing of one gradient."""
    if not local_epochs:
        if lr is not None or batch_size is not None:
            raise UserError("lr and batch_size are of local steps, allowed: with local_epochs")
        return Schedule(rounds=1, loss=loss, batch_size=images)
    if lr is None:
        raise UserError(f"local_epochs is {local_epochs}, which needs lr, the rate of the steps")
    return Schedule(rounds=1, loss=loss, batch_size=batch_size or images, local_epochs=local_epochs, lr=lr)


def _view(task: Task, seen: Observation, samples: tuple[Tensor, Tensor] | None) -> View:
    return View(
        threat=Threat("server", "adaptive"),
        reading="gradient",
        input_shape=task.input_shape,
        n_classes=task.n_classes,
        observations=(seen,),
        output_layer=task.layers[-1][0],
        loss=task.schedule.loss,
        population=None if samples is None else Population(*samples),
    )


def _task(model: nn.Module, shape: tuple[int, ...], n_classes: int, images: int, schedule: Schedule) -> Task:
    return Task(model=deepcopy(model), input_shape=shape, n_classes=n_classes, sizes=(images,), schedule=schedule)


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


def _labels_for(attack: Inference, name: str, given: Sequence[int] | Tensor | None, images: int) -> Tensor | None:
    """The labels that the attack gets. Raises UserError where it needs them, or makes no use of them."""
    labels = _labels(given, images)
    if labels is None and attack.needs_labels:
        raise UserError(f"attack {name}: with these options it is given the labels: pass labels")
    if labels is not None and not attack.needs_labels:
        raise UserError(f"attack {name}: with these options it makes no use of labels: leave them out")
    return labels


def _labels(given: Sequence[int] | Tensor | None, images: int) -> Tensor | None:
    if given is None:
        return None
    known = torch.as_tensor(given, dtype=torch.int64)
    if known.shape != (images,):
        raise UserError(f"labels have the shape {list(known.shape)}, allowed: [{images}], one for each image")
    return known


def _attack(name: str, options: Mapping[str, Any], task: Task) -> Inference:
    """The attack. Raises UserError for one of another kind or of another package, or options that do not fit."""
    spec = compose.parse_attack(name, {option: to_text(value) for option, value in options.items()})
    kind = compose.attack_class(spec)
    if not issubclass(kind, Inference) or kind.goal != "reconstruction":
        raise UserError(f"attack is '{name}', which guesses no images, allowed: an attack after images")
    if compose.foreign("attack", spec):
        raise UserError(f"attack {name} is of another package, whose code does not run in this process")
    made = compose.make_inference(spec)
    made.fit(task)
    return made


def _parameters(task: Task, model: nn.Module) -> Tensors:
    """The model's parameters. Raises UserError for a model that does not fit."""
    params = {name: p.detach().clone() for name, p in model.named_parameters()}
    _require_fit(task, params)
    return params


def _require_fit(task: Task, params: Tensors) -> None:
    """Raise UserError for a model that does not take such inputs, or that does not say the same twice."""
    stateful = [name for name, m in task.model.named_modules() if m.training and any(True for _ in m.buffers(False))]
    if stateful:
        raise UserError(
            f"model: {stateful[0] or type(task.model).__name__} is in training mode and keeps numbers of its batches, "
            "allowed: evaluation mode (model.eval())"
        )
    x = torch.zeros(2, *task.input_shape)
    try:
        out = task.outputs(params, x)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise UserError(
            f"model: it does not take inputs of shape {list(x.shape)}: {str(error).splitlines()[0]}"
        ) from None
    if not isinstance(out, Tensor) or tuple(out.shape) != (2, task.n_classes):
        got = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise UserError(f"model: for 2 inputs it gives {got}, allowed: [2, {task.n_classes}], a number for each class")


def _named(gradients: Gradients, params: Tensors) -> Tensors:
    """The gradient by name, in the order of the parameters. Raises UserError where it does not fit."""
    if not isinstance(gradients, Mapping):
        if len(gradients) != len(params):
            raise UserError(f"gradients are {len(gradients)} tensors, allowed: {len(params)}, one for each parameter")
        gradients = dict(zip(params, gradients, strict=True))
    if gradients.keys() != params.keys():
        odd = sorted(gradients.keys() ^ params.keys())
        raise UserError(f"gradients and parameters differ in {odd[0]}, allowed: a gradient for each parameter")
    named = {name: gradients[name].detach().to(p) for name, p in params.items()}
    for name, g in named.items():
        if g.shape != params[name].shape:
            raise UserError(f"the gradient of {name} has shape {list(g.shape)}, allowed: {list(params[name].shape)}")
        if not bool(torch.isfinite(g).all()):
            raise UserError(f"the gradient of {name} has values that are not finite, allowed: finite numbers")
    return named
