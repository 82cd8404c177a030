"""A board: records of a suite or a folder, put together cell by cell.

What leaderboards, reports and the regression gate read, also where it is published
(`fedarena.board.published`). Everything in it comes from records; nothing is computed that could not
be computed anew from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

STATUSES = ("ok", "n/a", "mixed", "diverged", "failed", "missing")
"""Of a cell or an honest run, over its seeds."""

BySeed = dict[int, float]


@dataclass(frozen=True)
class Arena:
    """A problem of the board, on which several defenses meet several attacks.

    Attributes:
        name: what the suite calls it.
        told: it in a line: data set, model, clients, how they train.
        dataset: registry name.
        measure: `accuracy` or `R2`.
        chance: what a constant prediction reaches.
        fedavg: FedAvg's accuracy by seed.
        subset: what is missing from the data, None for complete data.
        utility: whether accuracy on it counts as utility; false where it is there for an attack's sake, and trains too
            short or on a network too odd for its accuracy to mean anything.
    """

    name: str
    told: str
    dataset: str
    measure: str
    chance: float
    fedavg: BySeed
    subset: str | None = None
    utility: bool = True


@dataclass(frozen=True)
class Honest:
    """A defense on a problem while nobody poisons.

    Attributes:
        problem, defense: where.
        status: ok, diverged, failed, `mixed` when seeds disagree, or missing.
        reason: why, where it is not ok.
        accuracy: clean accuracy by seed.
        utility: accuracy / FedAvg's accuracy on the suite's problem, cut to [0, 1], by seed.
        bytes_up, bytes_down: per client and round. relative_seconds: training time / FedAvg's. peak_bytes: of a
            client's step. Means over seeds.
        guarantees: what the protocol promises, such as epsilon.
        marks: what must stand beside every number.
        curve: [round, accuracy] of the least seed.
        keys: its records.
        command: makes it anew.
    """

    problem: str
    defense: str
    status: str
    reason: str
    accuracy: BySeed
    utility: BySeed
    bytes_up: float
    bytes_down: float
    relative_seconds: float | None
    peak_bytes: float
    guarantees: dict[str, float]
    marks: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    keys: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Cell:
    """One attack on one defense as one threat, over seeds.

    Attributes:
        problem, defense, attack: what met what.
        axis: `integrity` of poisoning, `privacy` of inference attacks.
        goal: what an inference attack is after; empty for poisoning.
        party, form: who, and how. knows: what corrupted clients know; empty for inference.
        status: ok, n/a, diverged, failed, `mixed` when seeds disagree, or missing: planned and not there.
        reason: why, where it is not ok; empty for missing.
        statuses: by seed; of planned seeds that are not there `missing`.
        reading: how the party looked at what it saw: of several the one with the lowest mean score, which is the one
            that the cell shows.
        scores: in [0, 1], higher is better for the defender, by seed; only of seeds that have one.
        metrics: what was measured, by name and seed.
        curve: of poisoned runs [round, accuracy] of the least seed.
        series: further series of the least seed, by name: [[x, y], ...]; `roc` is [false positive rate, true positive
            rate].
        keys: record keys by seed, of the reading shown.
        beside: mean scores of the other readings, by name.
        found_by: who made the attack, where it is not this package's own; else empty.
        settings: digest of every option and of the problem, all seeds alike; a cell of another board with another
            digest is another experiment.
        defended: digest of the problem and of the defense's options alone.
        versions: versions of the methods.
        command: makes the cell anew.
        marks: what must stand beside its numbers and does not beside those of the honest run, such as that gradients
            were lost to rounding while it was poisoned.
        counts: whether it counts in its axis's score; what tells of the server's model, or of a gradient alone, stands
            beside (`fedarena.goals.goal.Goal.of_data`).
    """

    problem: str
    defense: str
    attack: str
    axis: str
    goal: str
    party: str
    form: str
    knows: str
    status: str
    reason: str
    statuses: dict[int, str]
    reading: str
    scores: BySeed
    metrics: dict[str, BySeed]
    curve: tuple[tuple[float, float], ...] = ()
    series: dict[str, list[list[float]]] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    found_by: str = ""
    settings: str = ""
    defended: str = ""
    versions: dict[str, int] = field(default_factory=dict)
    command: str = ""
    counts: bool = True
    marks: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, ...]:
        """By which a cell is found on another board."""
        return (self.problem, self.defense, self.attack, self.party, self.form, self.knows)

    @property
    def attempt(self) -> tuple[str, ...]:
        """What is tried as whom, whatever the defense and the form."""
        return (self.problem, self.attack, self.party, self.knows)

    @property
    def threat(self) -> str:
        """Who attacks, in words: "server, adaptive" or "corrupted clients (own), paper"."""
        who = f"corrupted clients ({self.knows})" if self.knows else self.party
        return f"{who}, {self.form}"


@dataclass(frozen=True)
class Board:
    """All cells of a suite or a folder.

    Attributes:
        suite: its name; of loose records the folder's.
        title: in words.
        seeds: all seeds, ascending.
        arenas, honest, cells: what was run.
        made: package version, commit, date of the newest record (empty where unknown), by name.
        notes: what a reader must know first, such as records left out because they were damaged.
    """

    suite: str
    title: str
    seeds: tuple[int, ...]
    arenas: tuple[Arena, ...]
    honest: tuple[Honest, ...]
    cells: tuple[Cell, ...]
    made: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def defenses(self) -> list[str]:
        """In the order in which they first come."""
        return list(dict.fromkeys([h.defense for h in self.honest] + [c.defense for c in self.cells]))


def overall(statuses: Iterable[str]) -> str:
    """The status of a cell whose seeds have these."""
    known = list(dict.fromkeys(statuses))
    return "missing" if not known else known[0] if len(known) == 1 else "mixed"
