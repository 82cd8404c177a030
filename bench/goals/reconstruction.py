"""Reconstruction: the samples behind an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Guess, Inference
from fedarena.contracts.readings import all_readings
from fedarena.core.text.numbers import number, percent
from fedarena.core.threat import NotApplicable
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.goals.metrics import reconstruction as judge
from fedarena.goals.metrics.reconstruction import median_estimate_metrics
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, average, percent_of, rate, values

if TYPE_CHECKING:
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.records.schema import Record

IMAGES = Wording(
    metric="recovered",
    tie="ssim",
    undefended="Without a defense {attack} recovers of the images",
    defended="Of the images, {attack} recovers from {defense}",
    outcome=percent_of("recovered"),
)
ROWS = Wording(
    metric="recovered",
    tie="psnr",
    undefended="Without a defense {attack} recovers of the rows",
    defended="Of the rows, {attack} recovers from {defense}",
    outcome=percent_of("recovered"),
)


class ReconstructionsText(GoalText):
    """The words of `Reconstructions`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return ROWS if "psnr" in metrics and "ssim" not in metrics else IMAGES

    def lines(self, cell: Cell) -> list[str]:
        m = cell.metrics
        if "recovered" not in m:
            return []
        psnr = f"PSNR {m['psnr'].value:.1f} dB"
        lines = [f"recovered {rate(m, 'recovered')}", f"SSIM {number(m['ssim'])}, {psnr}" if "ssim" in m else psnr]
        lines += [f"guessed blindly {percent(m['blind'])}"] if "blind" in m else []
        if "label_accuracy" in m:
            return [*lines, f"labels {rate(m, 'label_accuracy')}"]
        return [*lines, f"labels off by {number(m['label_error'])}"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not values(records, "prior_mean_mse"):
            return []
        parts, rows = [], not values(records, "prior_mean_ssim")
        for name, title in (("prior_mean", "the mean training"), ("prior_nearest", "the nearest training")):
            psnr, ssim = f"row has PSNR {average(records, f'{name}_psnr'):.1f} dB", f"{name}_ssim"
            like = psnr if rows else f"image has SSIM {average(records, ssim):.2f}"
            share = 100 * average(records, f"{name}_recovered")
            parts.append(f"{title} {like} and counts as recovered for {share:.0f} %")
        if values(records, "prior_label_error"):
            parts.append(f"the median training label is off by {average(records, 'prior_label_error'):.2f}")
        sentences = [f"Without any attack: {'; '.join(parts)}."]
        return (
            [*sentences, "Rows of a table count as recovered from 30 dB on, and are not drawn."] if rows else sentences
        )


class Reconstructions(InferenceGoal):
    """Answers are `fedarena.contracts.inference.Guess`, compared with the samples behind each observation."""

    text: ClassVar[GoalText] = ReconstructionsText()

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        readings = all_readings(finished.defense, transcript.threat, transcript.seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        challenges: list[Challenge | NoChallenge] = []
        for reading in readings:
            truths = [finished.truth(o) for o in reading.observations]
            if not any(len(y) for _, y in truths):
                challenges.append(NoChallenge(reading.name, "no batch attacked held a sample"))
                continue
            known = median_estimate_metrics(finished, reading.observations) | judge.prior_metrics(
                truths, finished.problem
            )
            challenges.append(
                Challenge(reading.name, finished.view(transcript.threat, attack, reading, truths), truths, known)
            )
        return challenges

    def judge(self, answer: Guess, challenge: Challenge) -> dict[str, float]:
        sizes = [o.images for o in challenge.view.observations]
        return judge.reconstruction_metrics(answer, challenge.answers, sizes, challenge.readings)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """`recovered`: the share of images recovered with SSIM ≥ 0.9, or of rows of a table with PSNR ≥ 30 dB."""
        return metrics["recovered"]

    def pictures(self, answer: Guess, challenge: Challenge) -> tuple[Tensor, Tensor] | None:
        originals = torch.cat([x for x, _ in challenge.answers]).cpu()
        matched = [judge.matched(g.images, x) for g, (x, _) in zip(answer, challenge.answers, strict=True)]
        return originals, torch.cat(matched).cpu()


GOAL = Reconstructions()
