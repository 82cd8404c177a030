"""Reconstruction: the samples behind an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Guess, Inference
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import Mean, number, percent
from fedarena.core.threat import NotApplicable
from fedarena.federation.population import halves
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics import reconstruction as judge
from fedarena.goals.metrics.calibration import recovered_threshold
from fedarena.goals.metrics.identification import Owned, Truth, draw_decoys
from fedarena.goals.metrics.reconstruction import median_estimate_metrics
from fedarena.goals.own_samples import why_all_own
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, average, percent_of, rate, values

if TYPE_CHECKING:
    from fedarena.core.threat import Threat
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

ALL_OF_CLASS = 0.995
"""The share of decoys of the victim's class from which the text names no other."""


def _wording(verb: str, of: str, metric: str, tie: str) -> Wording:
    return Wording(metric=metric, tie=tie, outcome=percent_of(metric), finds=f"{verb} {{outcome}} of the {of}")


class ReconstructionsText(GoalText):
    """The words of `Reconstructions`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        of, tie = ("rows", "psnr") if "psnr" in metrics and "ssim" not in metrics else ("images", "ssim")
        if "token_accuracy" in metrics:
            of, tie = "texts", "token_accuracy"
        # Records of schema 7 and earlier have no identification.
        if "identified" not in metrics and "recovered" in metrics:
            return _wording("recovers", of, "recovered", tie)
        return _wording("identifies", of, "identified", tie)

    def lines(self, cell: Cell) -> list[str]:
        m = cell.metrics
        if "recovered" not in m:
            return []
        lines = [_identified(cell)] if "identified" in m else []
        psnr = f"PSNR {m['psnr'].value:.1f} dB"
        lines += [f"recovered {rate(m, 'recovered')}", f"SSIM {number(m['ssim'])}, {psnr}" if "ssim" in m else psnr]
        if "token_accuracy" in m:
            lines[-1:] = [f"exact {rate(m, 'exact')}", f"words {percent(m['token_accuracy'])}, {_rouge(m)}"]
        lines += [f"guessed blindly {percent(m['blind'])}"] if "blind" in m else []
        if "label_accuracy" in m:
            return [*lines, f"labels {rate(m, 'label_accuracy')}"]
        return [*lines, f"labels off by {number(m['label_error'])}"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not values(records, "prior_mean_mse"):
            return []
        if values(records, "prior_mean_token_accuracy"):
            return [*_meaning(records), f"Without any attack: {'; '.join(map(partial(_copied, records), PRIORS))}."]
        parts, rows = [], not values(records, "prior_mean_ssim")
        for name, title in (("prior_mean", "the mean training"), ("prior_nearest", "the nearest training")):
            psnr, ssim = f"row has PSNR {average(records, f'{name}_psnr'):.1f} dB", f"{name}_ssim"
            like = psnr if rows else f"image has SSIM {average(records, ssim):.2f}"
            share = 100 * average(records, f"{name}_recovered")
            parts.append(f"{title} {like} and counts as recovered for {share:.0f} %")
        if values(records, "prior_label_error"):
            parts.append(f"the median training label is off by {average(records, 'prior_label_error'):.2f}")
        sentences = [*_meaning(records), f"Without any attack: {'; '.join(parts)}."]
        return [*sentences, "Rows of a table are not drawn."] if rows else sentences


PRIORS = (("prior_mean", "the mean training text"), ("prior_nearest", "the nearest training text"))


def _copied(records: Sequence[Record], prior: tuple[str, str]) -> str:
    """What a text that is no guess has in common with the truth."""
    name, title = prior
    words, rouge, same = (average(records, f"{name}_{key}") for key in ("token_accuracy", "rouge_l", "recovered"))
    named = f"{title} names {100 * words:.0f} % of the words, has ROUGE-L {rouge:.2f}"
    return f"{named} and counts as recovered for {100 * same:.0f} %"


def _rouge(m: Mapping[str, Mean]) -> str:
    """'ROUGE-1/2/L 0.91/0.80/0.90'."""
    return f"ROUGE-1/2/L {'/'.join(f'{m[name].value:.2f}' for name in ('rouge_1', 'rouge_2', 'rouge_l'))}"


def _identified(cell: Cell) -> str:
    """'identified 95 % (76 to 99 %) of 20'."""
    m = cell.metrics
    return f"identified {rate(m, 'identified')} of {m['images'].value * m['images'].seeds:.0f}"


def _meaning(records: Sequence[Record]) -> list[str]:
    """Sentences that say what identified and recovered mean here."""
    if not values(records, "identified"):
        return []
    decoys, same = average(records, "decoys"), average(records, "decoys_same_class")
    kind = "of the same class" if same > ALL_OF_CLASS else f"{100 * same:.0f} % of them of the same class"
    chance, mean = (100 * average(records, name) for name in ("identified_chance", "prior_mean_identified"))
    if values(records, "recovered_above"):
        recovered = f"its SSIM is above {average(records, 'recovered_above'):.2f}"
    else:
        recovered = f"its mean squared error is below {average(records, 'recovered_below'):.2g}"
    return [
        f"A victim is identified when the guess is nearer to it than to {decoys:.0f} other real samples, {kind}: "
        f"chance is {chance:.0f} %, and the mean training sample identifies {mean:.0f} %.",
        f"A sample counts as recovered when {recovered}, which at most 5 % of the training samples reach with their "
        "nearest neighbours.",
    ]


class Reconstructions(InferenceGoal):
    """Answers are `fedarena.contracts.inference.Guess`, compared with the samples behind each observation."""

    text: ClassVar[GoalText] = ReconstructionsText()
    reads_uploads = True
    finds_other_rounds = True
    what_leaks = "samples"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        readings = finished.readings(transcript.threat, transcript.seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        if (own := why_all_own(finished.problem, transcript.threat)) is not None:
            return own
        challenges: list[Challenge | NoChallenge] = []
        for reading in readings:
            truths = [finished.truth(o) for o in reading.observations]
            if not any(len(y) for _, y in truths):
                challenges.append(NoChallenge(reading.name, "no batch attacked held a sample"))
                continue
            victims = _victims(finished, transcript.threat, attack, truths)
            known = median_estimate_metrics(finished, reading.observations)
            known |= judge.prior_metrics(victims, finished.problem)
            view = finished.view(transcript.threat, attack, reading, truths)
            challenges.append(Challenge(reading.name, view, victims, known))
        return challenges

    def judge(self, answer: Guess, challenge: Challenge) -> dict[str, float]:
        sizes = [o.images for o in challenge.view.observations]
        return judge.reconstruction_metrics(answer, challenge.answers, sizes, challenge.readings)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(identified − chance)/(1 − chance); of records without identification (schema 7 and earlier) `recovered`."""
        if "identified" not in metrics:
            return metrics["recovered"]
        return above(metrics["identified"], metrics["identified_chance"])

    def chance(self, metrics: Mapping[str, float]) -> tuple[str, float]:
        return "identified", metrics["identified_chance"]

    def pictures(self, answer: Guess, challenge: Challenge) -> tuple[Tensor, Tensor] | None:
        if challenge.answers.texts:
            return None
        truths = challenge.answers.truths
        originals = torch.cat([x for x, _ in truths]).cpu()
        matched = [judge.matched(g.images, x) for g, (x, _) in zip(answer, truths, strict=True)]
        return originals, torch.cat(matched).cpu()


_thresholds: dict[tuple[str | None, tuple[int, ...]], float] = {}
"""The thresholds that this process has computed, by the checksum and the shape of the training samples."""


def _threshold(problem: Problem) -> float:
    """From which likeness a sample of the data set counts as recovered; computed once a process and data set."""
    key = problem.provenance.sha256, tuple(problem.x.shape)
    if key[0] is None:
        return recovered_threshold(problem)
    if key not in _thresholds:
        _thresholds[key] = recovered_threshold(problem)
    return _thresholds[key]


def _victims(finished: FinishedRun, threat: Threat, attack: Inference, truths: Sequence[Truth]) -> judge.Victims:
    """What guesses are held against: the truths, and decoys among which they are to be found."""
    problem, seed = finished.problem, finished.spec.root
    none = torch.empty(0, dtype=torch.int64)
    owned = Owned(
        train=problem.shards[threat.client] if threat.visibility.own else none,
        test=halves(problem, seed)[0] if attack.needs_population else none,
    )
    decoys = draw_decoys(truths, problem, owned, Rng(seed).child("identification"))
    return judge.Victims(tuple(truths), decoys, _threshold(problem), texts=bool(problem.words))


GOAL = Reconstructions()
