"""A board: the records of a suite or a folder, combined cell by cell.

Leaderboards, reports and the regression gate read it; `fedarena.board.published` reads and writes its published form.
Everything in a board comes from records and can be computed again from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from fedarena.core.short_repr import ShortRepr

STATUSES = ("ok", "n/a", "mixed", "diverged", "failed", "missing")
"""The statuses of a cell or a clean run over its seeds."""

BySeed = dict[int, float]


@dataclass(frozen=True)
class ProblemInfo:
    """A problem of the board, on which several defenses meet several attacks.

    Attributes:
        name: its name in the suite.
        description: one line with data set, model, clients and training.
        dataset: registry name of the data set.
        measure: `accuracy` or `R2`.
        chance: what a constant prediction reaches.
        reference_accuracy: FedAvg's accuracy by seed.
        local_only: the mean accuracy of clients that train alone, by seed.
        subset: what is missing from the data; None for complete data.
        utility: whether accuracy on it counts as utility. It does not where the problem exists for one attack, and
            trains too briefly or on too unusual a network for its accuracy to mean anything.
    """

    name: str
    description: str
    dataset: str
    measure: str
    chance: float
    reference_accuracy: BySeed
    local_only: BySeed = field(default_factory=dict)
    subset: str | None = None
    utility: bool = True


@dataclass(frozen=True)
class CleanRun:
    """A defense on a problem without any poisoning.

    Attributes:
        problem, defense: what was trained, and under which defense.
        status: ok, diverged, failed, missing, or `mixed` where seeds disagree.
        reason: why the status is not ok.
        accuracy: clean accuracy by seed.
        utility: what it keeps of FedAvg's gain over not federating, by seed (`fedarena.goals.metrics.gain`).
        local_only: the mean accuracy of clients that train alone, by seed, on the problem as the defense trains it.
        server_only: the accuracy of the defense's server if it trains alone, by seed; empty if it holds no samples.
        bytes_up, bytes_down: bytes per client and round, means over seeds.
        relative_seconds: training time / FedAvg's, mean over seeds.
        peak_bytes: peak memory of a client's step, mean over seeds.
        guarantees: what the protocol promises, such as epsilon.
        warnings: what a reader must know beside every number of this run.
        curve: [round, accuracy] of the least seed.
        keys: keys of its records.
        command: the command that measures it again.
        client_mean, client_lowest_decile: over honest clients, the accuracy on held-out data with the client's own
            shares of classes (`fedarena.federation.by_client`), by seed; empty where all clients hold the same mix.
        nodes: without a server what its nodes reach (`fedarena.federation.nodes`), by name and seed; {} with one.
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
    warnings: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    keys: tuple[str, ...]
    command: str
    local_only: BySeed = field(default_factory=dict)
    server_only: BySeed = field(default_factory=dict)
    client_mean: BySeed = field(default_factory=dict)
    client_lowest_decile: BySeed = field(default_factory=dict)
    nodes: dict[str, BySeed] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        """(problem, defense), which identifies the run on any board."""
        return (self.problem, self.defense)


@dataclass(frozen=True)
class BoardCell:
    """One attack on one defense under one threat, over seeds.

    Attributes:
        problem, defense, attack: the pairing.
        axis: `integrity` for poisoning, `privacy` for inference attacks.
        goal: the goal of an inference attack; empty for poisoning.
        party, form: who attacks, and in which form.
        knows: what corrupted clients know; empty for inference.
        status: ok, n/a, diverged, failed, missing (planned, without a record), or `mixed` where seeds disagree.
        reason: why the status is not ok; empty for missing.
        statuses: status by seed, with `missing` for planned seeds without a record.
        reading: which of several readings of the transcript the cell shows: the one with the lowest mean score.
        scores: scores in [0, 1] by seed, higher is better for the defender; only seeds that have one.
        metrics: measured values, by name and seed.
        curve: [round, accuracy] of the least seed of poisoned runs.
        series: further series of the least seed, by name: [[x, y], ...]; `roc` is [false positive rate, true positive
            rate].
        keys: record keys by seed, of the reading shown.
        other_readings: mean scores of the readings that are not shown, by name.
        found_by: who contributed the attack, if it is not part of this package; otherwise empty.
        settings: digest of every option and of the problem, the same for all seeds. A cell of another board with
            another digest is another experiment.
        defense_settings: digest of the problem and of the defense's options alone.
        versions: versions of the methods.
        command: the command that measures the cell again.
        warnings: what a reader must know beside its numbers in addition to the warnings of the clean run, such as
            gradients that were lost to rounding under poisoning.
        counts: whether it counts in its axis's score. Attacks on the server's model, on a gradient alone or on how a
            class looks do not (`fedarena.goals.goal.Goal.of_data`), nor do cells with an `excluded`.
        excluded: why a cell that was to count does not: it is silent, misleading or uninformative, or its
            attack was not tuned (`fedarena.board.exclusion`).
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
    other_readings: dict[str, float] = field(default_factory=dict)
    found_by: str = ""
    settings: str = ""
    defense_settings: str = ""
    versions: dict[str, int] = field(default_factory=dict)
    command: str = ""
    counts: bool = True
    excluded: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, ...]:
        """What identifies the cell on any board."""
        return (self.problem, self.defense, self.attack, self.party, self.form, self.knows)

    @property
    def attempt(self) -> tuple[str, ...]:
        """The attack and the threat, whatever the defense and the form."""
        return (self.problem, self.attack, self.party, self.knows)

    @property
    def threat(self) -> str:
        """Who attacks, in words: "server, adaptive" or "corrupted clients (own), paper"."""
        who = f"corrupted clients ({self.knows})" if self.knows else self.party
        return f"{who}, {self.form}"


@dataclass(frozen=True, repr=False)
class Board(ShortRepr):
    """All cells of a suite or a folder.

    Attributes:
        suite: name of the suite, or of the folder of loose records.
        title: the title that readers see.
        seeds: all seeds, ascending.
        problems, clean_runs, cells: what was run.
        provenance: package version, commit, date of the newest record (empty where unknown), by name.
        notes: what a reader must know first, such as damaged records that were left out.
    """

    suite: str
    title: str
    seeds: tuple[int, ...]
    problems: tuple[ProblemInfo, ...]
    clean_runs: tuple[CleanRun, ...]
    cells: tuple[BoardCell, ...]
    provenance: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def defenses(self) -> list[str]:
        """The defenses in the order of their first appearance."""
        return list(dict.fromkeys([r.defense for r in self.clean_runs] + [c.defense for c in self.cells]))

    @cached_property
    def cells_of(self) -> dict[str, list[BoardCell]]:
        """The cells of each defense, in the board's order: a page ranks all defenses under hundreds of threats."""
        found: dict[str, list[BoardCell]] = {defense: [] for defense in self.defenses}
        for cell in self.cells:
            found[cell.defense].append(cell)
        return found


def overall(statuses: Iterable[str]) -> str:
    """The status over seeds: the one that all have, `mixed`, or `missing` where there are no seeds."""
    known = list(dict.fromkeys(statuses))
    return "missing" if not known else known[0] if len(known) == 1 else "mixed"
