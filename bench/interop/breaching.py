"""breaching's attacks on gradients, and on views of a run (https://github.com/JonasGeiping/breaching, MIT licence).

breaching is imported, and nothing of it is copied. An attack is named as in its folder of configurations, such as
`invertinggradients`, and an option by its path in that configuration:

    from fedarena.interop import breaching

    breaching.invert(model, gradient, input_shape=(3, 32, 32), n_classes=10, **{"optim.max_iterations": 400})
    fa.run("fedavg", breaching.as_attack("deepleakage"))

An attack there knows a model, its loss and one gradient of the mean loss of a batch. A view with any other reading is
not applicable. Pixels are in [0, 1] for both libraries, without normalisation.
"""

from __future__ import annotations

import io
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import make_dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import grad
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedarena.contracts.inference import Inference, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol
from fedarena.contracts.view import View
from fedarena.core.card import Card
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.given import integer
from fedarena.core.options import option
from fedarena.core.rng import LARGEST_SEED, Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.core.torchvision_import import declare_operators
from fedarena.federation.foreign_gradient import Gradients, view_of
from fedarena.interop.global_seed import global_seed
from fedarena.interop.library import release, release_number
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

DEFAULT = "invertinggradients"
TYPES = ("optimization", "joint-optimization", "analytic")
"""Types of attacks that need nothing but a gradient. The others need a server that changes the model, or a network of
a kind of their own."""
COLOURS = 3
ROUNDING = 1e-3
"""How far two computations of a gradient differ at most, as a share of its length."""


def invert(
    model: nn.Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    attack: str = DEFAULT,
    images: int = 1,
    labels: Sequence[int] | Tensor | None = None,
    loss: str = "cross-entropy",
    seed: int = 0,
    **options: Any,
) -> Reconstruction:
    """Guess the images behind a gradient, as `fa.invert` does, by an attack of breaching.

    Args:
        attack: breaching's name of the attack. options: paths in its configuration → values.
        seed: what breaching draws from the global generators follows it; the generators are put back.

    The other arguments are those of `fa.invert`.

    Returns:
        The guess. `match` is the distance by which breaching chose it, NaN for an attack without a search.
        `evaluations` counts how often it computed the loss.

    Raises:
        UserError: breaching is not installed, input that does not fit together, or an attack that cannot run on it.
    """
    _require(attack)
    view = view_of(
        model, gradients, input_shape=input_shape, n_classes=n_classes, images=images, labels=labels, loss=loss
    )
    rng = Rng(integer("seed", seed, 0, LARGEST_SEED))
    answer = guesses(view, attack, rng, _overrides(options))
    if isinstance(answer, NotApplicable):
        raise UserError(f"breaching's {attack}: {answer.reason}")
    return answer[0]


def guesses(view: View, attack: str, rng: Rng, overrides: Sequence[str] = ()) -> list[Reconstruction] | NotApplicable:
    """One guess for each observation of a view, or why there can be none. Raises UserError as `invert` does.

    Args:
        overrides: of breaching's configuration, each as PATH=VALUE.
    """
    configured = _configured(attack, overrides)
    found = []
    for i, seen in enumerate(view.observations):
        plain = _plain(seen, rng.child("probe", i))
        if plain is None:
            return NotApplicable("it needs the gradient of the plain model's mean loss, which this view does not have")
        if (
            seen.labels is None
            and configured.attack_type != "joint-optimization"
            and list(plain[1])[-1] != seen.output_bias
        ):
            return NotApplicable("it reads the labels off the last parameter, which is no bias of the output layer")
        with global_seed(rng.child("attack", i)):
            found.append(_guess(attack, configured, view, seen, plain))
    return found


def as_attack(name: str = DEFAULT, **options: Any) -> Card:
    """An attack of breaching as a method that `fa.run` takes. It attacks the first round.

    Its one option `settings` has breaching's options, so that they are in records and their keys.

    Args:
        name: breaching's name of the attack. options: paths in its configuration → values.

    Raises:
        UserError: breaching is not installed, or it has no such attack or option.
    """
    overrides = _overrides(options)
    _configured(name, overrides)
    installed = release("breaching", "breaching", name)
    settings = option(
        " ".join(overrides), "what differs from breaching's configuration: PATH=VALUE, separated by blanks"
    )
    return Card(
        name=f"breaching-{name}",
        kind="attack",
        title=f"{name} of breaching {installed}",
        target=type("Attack", (FromBreaching,), {"name": name}),
        options=make_dataclass("Options", [("settings", str, settings)], frozen=True),
        version=release_number(installed),
        url="https://github.com/JonasGeiping/breaching",
    )


class FromBreaching(Inference):
    """An attack of breaching by its name there, with the option `settings`."""

    name: ClassVar[str]

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.opening(1, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Reconstruction] | NotApplicable:
        return guesses(view, self.name, rng, re.split(r"\s+(?=[\w.]+=)", self.options.settings or ""))


class MeanLoss(nn.Module):
    """The mean loss of a batch, which counts how often it is computed."""

    def __init__(self, criterion: Criterion) -> None:
        super().__init__()
        self.criterion, self.calls = criterion, 0

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        self.calls += 1
        return self.criterion.mean(out, y)


def _require(attack: str) -> Any:
    """The library. Raises UserError if it is not installed."""
    release("breaching", "breaching", f"breaching's {attack}")
    declare_operators()  # it imports torchvision
    with _quietly():
        return import_module("breaching")


def _overrides(options: Mapping[str, Any]) -> list[str]:
    return [f"{path}={json.dumps(value)}" for path, value in options.items()]


def _configured(attack: str, overrides: Sequence[str]) -> Any:
    """The configuration of an attack. Raises UserError."""
    library = _require(attack)
    names = [file.name for file in files("breaching.config.attack").iterdir() if file.name[0] != "_"]
    known = [name.removesuffix(".yaml") for name in names if name.endswith(".yaml")]
    if attack not in known:
        raise UserError(f"breaching has no attack {attack!r}{did_you_mean(attack, known)}")
    try:
        with _quietly():
            configured = library.get_attack_config(attack, list(filter(None, overrides)))
    except import_module("hydra.errors").HydraException as error:
        why = str(error).splitlines()[0]
        raise UserError(f"breaching's {attack}: {why} Options are paths in its configuration") from None
    if configured.attack_type not in TYPES:
        raise UserError(
            f"breaching's {attack} is of the type {configured.attack_type}, allowed: {', '.join(TYPES)}, which need no "
            "more than a gradient"
        )
    return configured


def _plain(seen: Observation, rng: Rng) -> tuple[Task, Tensors] | None:
    """The model and the parameters of whose mean loss the target is the gradient; None if it is no such gradient.

    A random batch tells: what is simulated for it must be its gradient.
    """
    simulate = seen.simulate
    if isinstance(simulate, PlainGradient):
        task, params = simulate.task, simulate.params
    elif isinstance(simulate, ThroughProtocol):
        task, params = simulate.defense.task, simulate.down
    else:
        return None
    names = [name for name, _ in task.model.named_parameters()]
    if task.criterion.outputs != task.n_classes or not set(names) == params.keys() == seen.target.keys():
        return None
    generator = rng.torch()
    x = torch.rand(seen.images, *task.input_shape, generator=generator)
    y = torch.rand(seen.images, task.n_classes, generator=generator).softmax(-1)
    expected, got = (
        torch.cat([t[n].flatten() for n in names]) for t in (grad(task.loss)(params, x, y), simulate(x, y))
    )
    if (got - expected).norm() > ROUNDING * expected.norm():
        return None
    return task, {name: params[name] for name in names}


def _guess(attack: str, configured: Any, view: View, seen: Observation, plain: tuple[Task, Tensors]) -> Reconstruction:
    task, params = plain
    varied = configured.get("regularization") and configured.regularization.get("total_variation")
    if varied and varied.scale > 0 and (len(view.input_shape) != COLOURS or view.input_shape[0] != COLOURS):
        raise UserError(
            f"breaching's {attack}: its total variation takes images of three colours, and inputs have the shape "
            f"{list(view.input_shape)}: set regularization.total_variation.scale to 0"
        )
    metadata = import_module("omegaconf").OmegaConf.create(
        {"shape": list(view.input_shape), "classes": view.n_classes, "modality": "vision", "task": "classification"}
    )
    # Buffers that are given, be they none, are what makes breaching leave the model in evaluation mode.
    payload = {"parameters": list(params.values()), "buffers": list(task.model.buffers()), "metadata": metadata}
    told = {"num_data_points": seen.images, "labels": seen.labels, "local_hyperparams": None}
    shared = {"gradients": [seen.target[name].clone() for name in params], "buffers": None, "metadata": told}
    setup = {"device": torch.device("cpu"), "dtype": torch.float}
    try:
        # Fused attention has no second derivative.
        with _quietly(), sdpa_kernel(SDPBackend.MATH):
            attacks = import_module("breaching.attacks")
            attacker = attacks.prepare_attack(task.model, MeanLoss(view.criterion), configured, setup)
            answer, stats = attacker.reconstruct([payload], [shared], {})
    except Exception as error:  # another library's code may fail in any way
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"breaching's {attack} fails: {why}") from error
    guessed = answer["data"].detach().reshape(seen.images, *view.input_shape)
    labels = answer["labels"].detach().flatten().long()
    return Reconstruction(guessed, labels, _distance(stats, configured), attacker.loss_fn.calls)


def _distance(stats: dict[str, Any], configured: Any) -> float:
    """The distance by which an answer was chosen; NaN for an attack without a search."""
    if configured.attack_type == "joint-optimization":  # whose score of its answer is taken at the labels of the start
        values = [value for name, trial in stats.items() if name.startswith("Trial_") for value in trial]
        return min(values, default=math.nan)
    return float(stats.get("opt_value", math.nan))


@contextmanager
def _quietly() -> Iterator[None]:
    """breaching prints what it loads, and older releases of it call hydra in a way that a later one warns of."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
