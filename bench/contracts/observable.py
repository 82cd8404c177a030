"""What the parties of a protocol observe: the side of a defense that attackers see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.final_model import FinalModel
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.task import Task

UNSEEN = NotApplicable("the party saw none of the rounds looked at: they failed, or it was not sampled")
"""Why nothing can be learned of the server's model."""


class Observable(ABC):
    """A protocol that says what each party observes.

    Attributes:
        task: the public facts.
        rule: the aggregation rule, if there is one.
    """

    task: Task
    rule: Aggregator | None

    @abstractmethod
    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """What a party observes of others' samples in the rounds `victims`.

        A party that is given no reading is not thereby harmless: the harness attacks a reading of its own of the same
        messages (`fedarena.contracts.control`).

        Args:
            threat: the party and its form.
            seen: the rounds that the party saw, with the fields that it can see.
            victims: the rounds whose samples are attacked.

        Returns:
            One reading for each way to turn what was seen into observations, the main one first; or why there is none.
        """

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        """What a party learns of the server's model from one round; by default the broadcast, if it is the model.

        Protocols that hide the model, or send more than it, override this.
        """
        if threat.party == "server":
            return NotApplicable("the server holds its own model")
        plain = {name for name, _ in self.task.model.named_parameters()}
        if set(now.down) != plain:
            return NotApplicable("the broadcast is not the plain model, and the defense has no way to make it one")
        return Disclosure(now.index, now.down)

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        """What a party learns of the server's model in the given rounds; by default from each of them alone.

        Args:
            seen: the rounds that it saw. They may include others than `rounds`, because the broadcasts of some
                protocols show more together.

        Returns:
            One for each of `rounds` that the party saw, or why one of them is missing.
        """
        results = [self.disclosure(threat, seen[t]) for t in rounds if t in seen]
        if not results:
            return UNSEEN
        disclosures = [d for d in results if isinstance(d, Disclosure)]
        return next((d for d in results if isinstance(d, NotApplicable)), disclosures)

    def final_model(self, threat: Threat) -> FinalModel | NotApplicable:
        """Which model a party has after the training, or why it has none.

        By default the server has what it deploys. An outsider has answers of the model that is released, everyone else
        that model itself.
        """
        if threat.party == "server":
            return "deployed"
        return "queries" if threat.party == "outsider" else "release"

    def why_not_mean(self) -> str:
        """Why a client cannot attack the mean of the others' uploads; empty where the server takes a mean.

        Most rules take one where they assume no client to be corrupted. One upload counts as a mean.
        """
        if self.takes_mean or self.picks:
            return ""
        return (
            "consecutive broadcasts show what the server's rule made of the uploads, and this attack reads the mean "
            "of all of them: that is its limit, and no strength of the rule"
        )

    @property
    def takes_mean(self) -> bool:
        """Whether the server steps by the mean of the uploads."""
        n, f = self.task.participants, self.task.assumed_corrupted_per_round
        return self.rule is None or self.rule.averages(n, f)

    @property
    def picks(self) -> bool:
        """Whether the server steps by a single upload."""
        return self.rule is not None and self.rule.picks(self.task.participants, self.task.assumed_corrupted_per_round)

    @property
    def mean_weights(self) -> tuple[int, ...]:
        """The weight of each client's upload in a mean: N_c, or 1 where a rule takes the unweighted mean."""
        return self.task.sizes if self.rule is None else (1,) * len(self.task.sizes)
