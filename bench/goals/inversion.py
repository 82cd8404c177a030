"""Inversion: pictures of what each class looks like to the model, which may show whose data it was trained on.

A separate classifier that the harness trains (`fedarena.goals.metrics.image_classifier`) names the class that each
picture shows. SSIM and PSNR compare the picture with the mean of the class's training images, and with the most similar
one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.final_model import Predictor
from fedarena.contracts.inference import Inference, Portraits
from fedarena.contracts.observation import Reading
from fedarena.core.binomial import share_ends
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import number
from fedarena.core.threat import EVERYONE, Form, NotApplicable, Party, Threat
from fedarena.goals import released_model as released
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.image_classifier import Evaluator, evaluator_of
from fedarena.goals.metrics.reconstruction import mean_image
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, average, percent_of, rate, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

NEAREST = 200
"""How many training images of a class a portrait is compared with at most: the first ones."""

ADAPTIVE = (
    "the released model is attacked as it is: no protocol stands between it and the attack that could be adapted to"
)


@dataclass(frozen=True)
class Sitters:
    """The classes that pictures are to show.

    Attributes:
        evaluator: the classifier that names the class of a picture.
        model: the model under attack.
        classes: the classes with training images, [k].
        means: the mean training image of each [k, channels, height, width] in [0, 1].
        examples: up to `NEAREST` training images of each.
    """

    evaluator: Evaluator
    model: Predictor
    classes: Tensor
    means: Tensor
    examples: tuple[Tensor, ...]


class InversionText(GoalText):
    """The words of `Inversion`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="top1",
            tie="ssim",
            outcome=percent_of("top1"),
            finds="makes pictures of which {outcome} are recognised as their class",
        )

    def lines(self, cell: Cell) -> list[str]:
        m = cell.metrics
        if "top1" not in m:
            return []
        lines = [f"recognised {rate(m, 'top1')}" + (f", among five {rate(m, 'top5')}" if "top5" in m else "")]
        lines.append(f"class mean: SSIM {number(m['ssim'])}, PSNR {m['psnr'].value:.1f} dB")
        lines.append(f"nearest image: SSIM {number(m['nearest_ssim'])}")
        lines.append(f"the model's own confidence {number(m['confidence'])}")
        return lines + ([f"{m['queries'].value:,.0f} queries"] if m["queries"].value else [])

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not values(records, "prior_top1"):
            return []

        def share(name: str) -> str:
            return f"{100 * average(records, name):.0f} %"

        ssim = {name: average(records, f"prior_{name}_ssim") for name in ("grey", "mean")}
        return [
            f"Without any attack: one picture for all classes is recognised in {share('prior_top1')}; to the class "
            f"mean a grey one has SSIM {ssim['grey']:.2f}, the mean training image {ssim['mean']:.2f}.",
            f"Who recognises: a classifier that was trained apart, right for {share('evaluator_accuracy')} of held-out "
            f"images and for {share('ceiling_top1')} of the class means.",
        ]

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        if (why := why_not(problem, transcript.threat)) is not None:
            return why
        text = released.model_in_words(defense, transcript.threat)
        if isinstance(text, NotApplicable):
            return text
        size = sum(p.numel() for p in problem.init.values())
        text += "" if transcript.threat.party == "outsider" else f", {size:,} parameters in clear"
        return text + (
            "\nand samples of its own, from the half of the held-out data" if attack.needs_population else ""
        )


class Inversion(InferenceGoal):
    """Answers are `fedarena.contracts.inference.Portraits`, compared with the training images of each class."""

    text: ClassVar[GoalText] = InversionText()

    of_data: ClassVar[bool] = False

    parties: ClassVar[tuple[Party, ...]] = EVERYONE
    undefended_form: ClassVar[Form] = "paper"

    def refuse(self, problem: Problem, protocol: Defense, attack: Inference) -> None:
        shape = problem.task.input_shape
        if len(shape) != 3 or min(shape[1:]) < images.WINDOW:
            raise UserError(
                f"option 'dataset' is {problem.dataset}, whose inputs have shape {shape}, allowed with inversions, "
                f"which are judged as images: (channels, height, width) with both sides {images.WINDOW} or more"
            )

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        if (why := why_not(finished.problem, transcript.threat)) is not None:
            return why
        held = released.model_of(finished, transcript.threat)
        if isinstance(held, NotApplicable):
            return held
        view = replace(finished.view(transcript.threat, attack, Reading(held.reading, ())), model=held.model)
        sitters = sitters_of(finished.problem, held.model)
        return [Challenge(held.reading, view, sitters, known_metrics(finished.problem, sitters))]

    def judge(self, answer: Portraits, challenge: Challenge) -> dict[str, float]:
        return portrait_metrics(answer, challenge.answers)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(top1 − prior)/(1 − prior), where the prior 1/classes is what one picture for all classes reaches."""
        return above(metrics["top1"], metrics["prior_top1"])

    def pictures(self, answer: Portraits, challenge: Challenge) -> tuple[Tensor, Tensor]:
        """The mean images of the classes, and the attack's pictures of them."""
        sitters: Sitters = challenge.answers
        return sitters.means.float().cpu(), images.valid(answer.images.cpu())[sitters.classes.cpu()].float()


def why_not(problem: Problem, threat: Threat) -> NotApplicable | None:
    """Why there is nothing to attack; None where there is a model to attack."""
    if threat.form == "adaptive":
        return NotApplicable(ADAPTIVE)
    if problem.task.n_classes == 0:
        return NotApplicable("the labels are numbers: there is no class to make a picture of")
    if problem.task.schedule.loss == "regression":
        return NotApplicable("the model has one output, which says nothing of how sure it is of a class")
    return None


def sitters_of(problem: Problem, model: Predictor) -> Sitters:
    """What the judge compares the pictures with."""
    classes = problem.y.unique()
    members = [problem.x[problem.y == k] for k in classes]
    means = torch.stack([x.double().mean(0) / problem.scale for x in members])
    examples = tuple(x[:NEAREST].double() / problem.scale for x in members)
    return Sitters(evaluator_of(problem), model, classes, means, examples)


def known_metrics(problem: Problem, sitters: Sitters) -> dict[str, float]:
    """What is known before any attack.

    Returns:
        evaluator_accuracy, on the held-out images; ceiling_top1, the share of the class means that it recognises;
        prior_top1, the share that it recognises if one picture serves for all classes, the better of mid-grey and the
        mean training image; prior_grey_ssim and prior_mean_ssim, SSIM of these two to the class means; classes.
    """
    evaluator, classes, means = sitters.evaluator, sitters.classes, sitters.means
    priors = {"grey": torch.full_like(means, 0.5), "mean": mean_image(problem).expand_as(means)}
    held_out = (problem.x_test[:10_000].float() / problem.scale, problem.y_test[:10_000])
    return {
        "evaluator_accuracy": evaluator.top(*held_out),
        "ceiling_top1": evaluator.top(means, classes),
        "prior_top1": max(evaluator.top(one, classes) for one in priors.values()),
        **{f"prior_{name}_ssim": float(images.ssim(one, means).mean()) for name, one in priors.items()},
        "classes": float(len(classes)),
    }


def portrait_metrics(answer: Portraits, sitters: Sitters) -> dict[str, float]:
    """How well the pictures show the classes, as means over the classes.

    Returns:
        top1, and with more than five classes top5: the share that the evaluator recognises, with its 95 % interval
        over classes as NAME_low and NAME_high (`fedarena.core.binomial`); ssim and psnr (dB), to the
        class's mean training image; nearest_ssim and nearest_psnr, each to the most similar of its training images;
        confidence, of the model under attack in the class; steps per class; queries in all.

    Raises:
        ValueError: there is not one image for each class.
    """
    classes, means = sitters.classes, sitters.means
    if answer.images.shape[1:] != means.shape[1:] or len(answer.images) <= int(classes.max()):
        raise ValueError(f"portraits of shape {tuple(answer.images.shape)} for classes of {tuple(means.shape[1:])}")
    portraits = images.valid(answer.images.to(means.device))[classes]
    near = [
        (images.ssim(a.expand_as(x), x).max(), images.psnr(a.expand_as(x), x).max())
        for a, x in zip(portraits, sitters.examples, strict=True)
    ]
    confidences = sitters.model.confidences(portraits.float())
    metrics = {f"top{k}": sitters.evaluator.top(portraits, classes, k) for k in (1, 5) if k < len(classes)}
    for name in list(metrics):
        metrics |= share_ends(name, metrics[name], len(classes))
    return metrics | {
        "ssim": float(images.ssim(portraits, means).mean()),
        "psnr": float(images.psnr(portraits, means).mean()),
        "nearest_ssim": float(torch.stack([ssim for ssim, _ in near]).mean()),
        "nearest_psnr": float(torch.stack([psnr for _, psnr in near]).mean()),
        "confidence": float(confidences.gather(1, classes[:, None]).mean()),
        "steps": float(answer.steps.double().mean()),
        "queries": float(answer.queries),
    }


GOAL = Inversion()
