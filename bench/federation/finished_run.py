"""A finished run with the truth about it, from which views are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Candidates, Observation, Reading
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Round, cut, weights
from fedarena.contracts.view import View
from fedarena.core.tensors import Tensors, same_names, stack, weighted_mean
from fedarena.core.threat import Threat
from fedarena.federation import rounds as federation
from fedarena.federation.population import population
from fedarena.federation.spec import GroupSpec
from fedarena.models.scaling.positive_scaling import ScalingPlan, canonical, plan, scales
from fedarena.problem.problem import Problem


@dataclass(frozen=True)
class FinishedRun:
    """A finished run with the truth about it."""

    spec: GroupSpec
    problem: Problem
    defense: Defense
    run: federation.Run

    def round(self, t: int) -> Round:
        """A written round."""
        return next(r for r in self.run.rounds if r.index == t)

    def truth(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The samples and labels behind an observation (of the first local epoch, where there are several)."""
        parts = [self._samples(observation.round, client) for client in observation.clients]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def _samples(self, t: int, client: int) -> tuple[Tensor, Tensor]:
        """What one client worked on in a round: its whole batch, or of local epochs the first."""
        r, task = self.round(t), self.problem.task
        x, y = r.batches[r.participants.index(client)].images()
        n = len(y) if task.schedule.fedsgd else images_behind(task, client)
        return x[:n], y[:n]

    def view(
        self,
        threat: Threat,
        attack: Inference,
        reading: Reading,
        truths: Sequence[tuple[Tensor, Tensor]] = (),
        candidates: Sequence[Candidates] = (),
    ) -> View:
        """The view of a reading.

        Args:
            attack: gets what it declares that it knows, and no more.
            truths: the samples behind each observation, of which an attack that `knows_labels` is told the labels.
            candidates: for an attack that tells members, whom to tell apart, for each observation.
        """
        task, observations = self.problem.task, reading.observations
        if attack.knows_labels:
            observations = tuple(replace(o, labels=y) for o, (_, y) in zip(observations, truths, strict=True))
        if candidates:
            observations = tuple(replace(o, candidates=c) for o, c in zip(observations, candidates, strict=True))
        own = {}
        if threat.visibility.own:
            seen = cut(self.run.rounds, threat)
            own = {t: s.own_batch for t, s in seen.items() if s.own_batch is not None}
        return View(
            threat,
            reading.name,
            task.input_shape,
            task.n_classes,
            observations,
            own,
            output_layer=task.layers[-1][0],
            loss=task.schedule.loss,
            population=population(self.problem, self.spec.seed) if attack.knows_population else None,
        )

    def estimated(self, observation: Observation, played: Round | None = None) -> Tensors:
        """The truth that an observation's `estimate` estimates.

        Args:
            played: its round, where it is not to be taken as it was.
        """
        assert observation.estimate is not None
        r, names = played or self.round(observation.round), tuple(observation.estimate)
        if observation.estimate_of == "update":
            return {name: r.params[name] - r.after[name] for name in names}
        if observation.estimate_of == "canonical update":
            before, after = (canonical(self._scaling, _double(p)) for p in (r.params, r.after))
            return {name: before[name] - after[name] for name in names}
        task = self.problem.task
        gradients = []
        for client in observation.clients:
            x, y = self._samples(observation.round, client)  # a batch drawn by chance may be empty: it has gradient 0
            zero = {name: torch.zeros_like(p) for name, p in r.params.items()}
            gradients.append(torch.func.grad(task.loss)(r.params, x, y) if len(y) else zero)
        sizes = weights(task.sizes, observation.clients).to(self.problem.device)
        mean = same_names(weighted_mean(stack(gradients), sizes), names)
        if observation.estimate_of == "canonical gradient":  # W = S∘C, so that ∂L/∂C = S∘∂L/∂W
            lengths = self._scaling.factors(scales(self._scaling, _double(r.params)))
            return {name: g * lengths[name].to(g) for name, g in mean.items()}
        return mean

    @cached_property
    def _scaling(self) -> ScalingPlan:
        """Reading it off the network's graph takes longer than a round of most."""
        return plan(self.problem.task.model, self.problem.task.input_shape)

    def warnings(self) -> list[str]:
        """What must stand beside every number of the run."""
        failed, rounds = self.run.failed, self.problem.task.schedule.rounds
        marks = [*self.problem.warnings, *self.run.warnings]
        if failed:
            marks.append(f"{failed} of {rounds} rounds gave nothing: too few clients were left for a secure sum")
        return marks


def _double(tensors: Tensors) -> Tensors:
    return {name: t.double() for name, t in tensors.items()}
