"""Metrics of stolen models: how closely they behave like the server's model on held-out inputs.

A model is a function, and parameters that differ by a symmetry of the network are the same one, so that outputs are
what is compared. `parameter_cosine` alone looks at parameters. Where the network keeps its function under positive
factors of its hidden units (`fedarena.models.scaling.positive_scaling.plan`) it compares canonical forms, which no such
factor changes; elsewhere the parameters as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from fedarena.contracts.inference import Extraction
from fedarena.contracts.observation import Disclosure
from fedarena.core.binomial import share_ends
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors, flatten, same_names, to
from fedarena.models.scaling.positive_scaling import canonical, plan
from fedarena.problem.loss import Criterion
from fedarena.problem.task import Task


@dataclass(frozen=True)
class Exam:
    """What stolen models are compared with.

    Attributes:
        task: the architecture and the loss.
        x, y: held-out inputs as stored [N, *input_shape], and their labels [N].
        scale: the stored value that means 1.0.
        models: the server's parameters in the round of each disclosure.
    """

    task: Task
    x: Tensor
    y: Tensor
    scale: float
    models: tuple[Tensors, ...]

    def outputs(self, params: Tensors) -> Tensor:
        """The plain model's outputs on the held-out inputs [N, outputs]."""
        return self.task.predictions(params, self.x, self.scale)


def extraction_metrics(answers: Sequence[Extraction], exam: Exam) -> dict[str, float]:
    """How much of the server's models was taken, as means over the rounds looked at.

    Args:
        answers: one model for each of `exam.models`.

    Returns:
        agreement, the share of inputs for which both models predict the same class; for numbers, the share of the
        server's outputs' variance that the stolen outputs explain, max(0, R²). Outputs that are not finite agree with
        nothing. prior_agreement: the agreement of the best constant class. For numbers it is 0; but if the server's own
        output is constant, it is 1, and a stolen model agrees if it gives that number.
        stolen_accuracy and server_accuracy: by the true labels; R² for numbers.
        output_error: ‖stolen outputs − server's‖ / ‖server's‖.
        parameter_cosine: of all parameters as one vector; see the module's docstring.
        final_agreement: the agreement in the last of the rounds. models: the number of rounds.
        agreement_low, agreement_high, final_agreement_low and final_agreement_high, for classes: 95 % intervals over
        inputs (`fedarena.core.binomial`). The inputs are the same in all rounds, so that they count once.

    Raises:
        ValueError: there is not one model per round, or parameters have other names or shapes than the plain model's.
    """
    if len(answers) != len(exam.models):
        raise ValueError(f"{len(answers)} models for {len(exam.models)} rounds")
    form = _form(exam.task)
    rounds = [_one(exam, a.params, server, form) for a, server in zip(answers, exam.models, strict=True)]
    metrics = {name: fmean(r[name] for r in rounds) for name in rounds[0]}
    metrics |= {"final_agreement": rounds[-1]["agreement"], "models": float(len(rounds))}
    if exam.task.criterion.n_classes:
        for name in ("agreement", "final_agreement"):
            metrics |= share_ends(name, metrics[name], len(exam.y))
    return metrics


def secret_metrics(disclosures: Sequence[Disclosure], secrets: Sequence[Tensors]) -> dict[str, float]:
    """`secret_error_NAME`: ‖estimate − secret‖ / ‖secret‖, the mean over the rounds in which it was estimated.

    Args:
        secrets: what the server drew and kept secret in the round of each disclosure.

    Raises:
        ValueError: an estimate has no secret of its name, or another shape.
    """
    errors: dict[str, list[float]] = {}
    for disclosure, truth in zip(disclosures, secrets, strict=True):
        _alike(disclosure.secrets, {name: truth[name] for name in disclosure.secrets if name in truth}, "secrets")
        for name, estimate in disclosure.secrets.items():
            errors.setdefault(f"secret_error_{name}", []).append(relative_error(estimate, truth[name]))
    return {name: fmean(values) for name, values in errors.items()}


def agreement(criterion: Criterion, stolen: Tensor, server: Tensor) -> float:
    """How far two models agree, from their outputs [N, outputs]; see `extraction_metrics`."""
    if not criterion.n_classes:
        if _constant(server):
            return float(torch.equal(stolen, server))
        explained = criterion.quality(stolen, server.squeeze(-1))
        return explained if explained > 0 else 0.0  # so written, NaN gives 0
    same = criterion.classes(stolen) == criterion.classes(server)
    return float((same & stolen.isfinite().all(-1)).double().mean())


def constant_agreement(criterion: Criterion, server: Tensor) -> float:
    """How far the best constant prediction agrees with a model of outputs [N, outputs]."""
    if not criterion.n_classes:
        return float(_constant(server))
    return float(criterion.classes(server).bincount().max()) / len(server)


def _constant(outputs: Tensor) -> bool:
    """Whether a model always gives the same number, which has no variance to explain."""
    return bool((outputs == outputs[0]).all())


def relative_error(estimate: Tensor, truth: Tensor) -> float:
    """‖estimate − truth‖ / ‖truth‖; for truth = 0 measured absolutely."""
    e, t = estimate.to(truth.device).double().flatten(), truth.double().flatten()
    return float((e - t).norm() / t.norm()) if t.norm() > 0 else float((e - t).norm())


def _one(exam: Exam, stolen: Tensors, server: Tensors, form: Callable[[Tensors], Tensors]) -> dict[str, float]:
    _alike(stolen, server, "parameters")
    criterion = exam.task.criterion
    stolen, server = to(stolen, exam.x.device), to(server, exam.x.device)
    theirs, ours = exam.outputs(stolen), exam.outputs(server)
    return {
        "agreement": agreement(criterion, theirs, ours),
        "prior_agreement": constant_agreement(criterion, ours),
        "stolen_accuracy": criterion.quality(theirs, exam.y),
        "server_accuracy": criterion.quality(ours, exam.y),
        "output_error": relative_error(theirs, ours),
        "parameter_cosine": _cosine(form(same_names(stolen, tuple(server))), form(server)),
    }


def _form(task: Task) -> Callable[[Tensors], Tensors]:
    """The parameters as they are compared: in canonical form, or as they are where the network has none."""

    def double(params: Tensors) -> Tensors:
        return {name: t.double() for name, t in params.items()}

    try:
        how = plan(task.model, task.input_shape)
    except UserError:
        return double
    return lambda params: canonical(how, double(params))


def _cosine(a: Tensors, b: Tensors) -> float:
    u, v = flatten(a), flatten(b)
    lengths = u.norm() * v.norm()
    return float(u @ v / lengths) if lengths > 0 else 0.0


def _alike(guess: Tensors, wanted: Tensors, what: str) -> None:
    shapes = [{name: tuple(t.shape) for name, t in tensors.items()} for tensors in (guess, wanted)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{what} of shapes {shapes[0]}, expected {shapes[1]}")
