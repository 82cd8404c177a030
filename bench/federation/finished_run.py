"""A finished run with the truth about it, from which views are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from fedarena.contracts.control import control_readings
from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Candidates, Observation, Reading
from fedarena.contracts.public_parts import without_public_parts
from fedarena.contracts.readings import all_readings
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Round, Seen, cut, weights
from fedarena.contracts.view import View
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, same_names, stack, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import rounds as federation
from fedarena.federation.population import population
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem


@dataclass(frozen=True)
class FinishedRun:
    """A finished run with the truth about it.

    Attributes:
        control: whether the harness's own reading of what crossed the wires takes the place of the defense's readings.
    """

    spec: GroupSpec
    problem: Problem
    defense: Defense
    run: federation.Run
    control: bool = False

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """All readings of what a party saw, without what is public (`fedarena.contracts.public_parts`)."""
        if self.control:
            readings = control_readings(self.defense, threat, self.run.rounds, seen, victims)
        else:
            readings = all_readings(self.defense, threat, seen, victims)
        return without_public_parts(readings, self.defense, threat, seen)

    def round(self, t: int) -> Round:
        """A written round."""
        return next(r for r in self.run.rounds if r.index == t)

    def server_in(self, r: Round) -> tuple[State, Broadcast, Cohort, Rng]:
        """What the server stepped from in a written round without a secure sum, beside the uploads.

        Its state, without the memory of its optimiser; what it had sent, the senders, and its randomness.
        """
        state = State(r.params, round=r.index, extra=r.extra, auxiliary=self.problem.auxiliary)
        cohort = Cohort(r.participants, weights(self.problem.task.sizes, r.participants).to(self.problem.device))
        rng = Rng(self.spec.root).child("federation", "aggregate", r.index)
        return state, Broadcast(r.down, r.secret), cohort, rng

    def truth(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The samples and labels behind an observation (of the first local epoch, where there are several)."""
        parts = [self._samples(observation.round, client) for client in observation.clients]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def _samples(self, t: int, client: int) -> tuple[Tensor, Tensor]:
        """The samples of one client in a round: its whole batch, or those of the first local epoch."""
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
            attack: gets what it declares that it needs, and no more.
            truths: the samples behind each observation; an attack that `needs_labels` gets their labels.
            candidates: for membership inference, the candidate samples of each observation.
        """
        task, observations = self.problem.task, reading.observations
        if attack.needs_labels:
            observations = tuple(replace(o, labels=y) for o, (_, y) in zip(observations, truths, strict=True))
        if candidates:
            observations = tuple(replace(o, candidates=c) for o, c in zip(observations, candidates, strict=True))
        own = {}
        if threat.visibility.own:
            seen = cut(self.run.rounds, threat)
            own = {t: s.own_batch for t, s in seen.items() if s.own_batch is not None}
        return View(
            threat=threat,
            reading=reading.name,
            input_shape=task.input_shape,
            n_classes=task.n_classes,
            observations=observations,
            own=own,
            output_layer=task.layers[-1][0],
            loss=task.schedule.loss,
            population=population(self.problem, self.spec.root) if attack.needs_population else None,
        )

    def estimated(self, observation: Observation, played: Round | None = None) -> Tensors:
        """The true value of what an observation's `estimate` estimates, by the names of the estimate.

        Args:
            played: a round that is used in place of the observation's own.
        """
        r = played or self.round(observation.round)
        truth = observation.estimate_of.truth(r.params, r.after, partial(self._gradient, observation, r))
        return same_names(truth, tuple(observation.estimate or ()))

    def _gradient(self, observation: Observation, r: Round) -> Tensors:
        """The plain gradient of the samples behind an observation, averaged over its clients by N_c.

        It is taken where the clients began.
        """
        task = self.problem.task
        gradients = []
        for client in observation.clients:
            x, y = self._samples(observation.round, client)
            params = r.model_of(client)
            if len(y):
                gradients.append(gradient(task.loss, params, x, y))
            else:  # a Poisson batch may be empty
                gradients.append({name: torch.zeros_like(p) for name, p in params.items()})
        sizes = weights(task.sizes, observation.clients).to(self.problem.device)
        return weighted_mean(stack(gradients), sizes)

    def warnings(self) -> list[str]:
        """Texts that must be shown beside every number of the run."""
        failed, rounds = self.run.failed, self.problem.task.schedule.rounds
        warnings = [*self.problem.warnings, *self.run.warnings]
        if failed:
            warnings.append(f"{failed} of {rounds} rounds gave nothing: too few clients were left for a secure sum")
        return warnings
