"""The result of a comparison: what was compared, under which rules, and what a person must look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from fedarena.board.board import BoardCell, CleanRun
from fedarena.board.gate.change import Change
from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.judge import Verdict
from fedarena.board.gate.means import CellMean
from fedarena.core.short_repr import ShortRepr
from fedarena.core.text.numbers import plural

REFERENCE = "FedAvg's accuracy"
"""The kind of a contrast of FedAvg's clean run. Its utility is always 1, so its accuracy is compared."""


@dataclass(frozen=True)
class Rules:
    """What counts as a finding.

    Attributes:
        false_alarm: the chance that any score of a board is a finding although nothing changed. Half of it is for
            single scores, half for means over many cells.
        effects: the least change that matters: of `privacy`, `integrity` and `utility` for single scores, of `mean`
            for means.
        losses_only: whether scores that rose are no findings.
        exact: whether every score of a cell or clean run that is not identical is a finding.
    """

    false_alarm: float = 0.05
    effects: dict[str, float] = field(
        default_factory=lambda: {"privacy": 0.1, "integrity": 0.1, "utility": 0.05, "mean": 0.02}
    )
    losses_only: bool = False
    exact: bool = False


@dataclass(frozen=True)
class Item:
    """A cell, a clean run or a mean over cells of the base board, or something about a board as a whole.

    Attributes:
        group: `cell`, `honest` (a clean run), `mean` or `board`.
        name: the item in words.
        changes: what changed besides the score.
        verdict: the test of its score; None where no score was compared.
        reason: why there is no score: n/a on both boards, or failed on both.
        command: the command that measures it again; empty for means.
    """

    group: str
    name: str
    changes: tuple[Change, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""
    command: str = ""

    @property
    def findings(self) -> list[str]:
        """What a person must look at, in words; empty where all is well."""
        words = [change.words for change in self.changes if change.finding]
        if self.verdict is not None and self.verdict.finding:
            words.append(finding_text(self.verdict))
        return words


@dataclass(frozen=True, repr=False)
class Comparison(ShortRepr):
    """What became of everything on the base board.

    Attributes:
        base, new: names of the boards.
        rules: what counts as a finding.
        items: what concerns boards as a whole, then everything in the order of the base board.
        added: names of cells and clean runs that only the new board has.
    """

    base: str
    new: str
    rules: Rules
    items: tuple[Item, ...]
    added: tuple[str, ...]

    @property
    def findings(self) -> list[Item]:
        """Items that a person must look at."""
        return [item for item in self.items if item.findings]

    @property
    def verdicts(self) -> list[Verdict]:
        """The tests of single scores."""
        return [item.verdict for item in self.items if item.group != "mean" and item.verdict is not None]

    @property
    def counts(self) -> dict[str, int]:
        """Number of scores of cells and clean runs by outcome; `none` where neither board has a score."""
        counts = dict.fromkeys(("identical", "noise", "loss", "gain", "unknown", "changed", "none"), 0)
        for item in self.items:
            if item.group in ("cell", "honest"):
                counts[item.verdict.outcome if item.verdict else "none"] += 1
        return counts


def cell_name(c: BoardCell) -> str:
    """A cell in words."""
    return f"{c.problem} · {c.defense} · {c.attack} · {c.threat}"


def clean_run_name(run: CleanRun) -> str:
    """A clean run in words."""
    return f"{run.problem} · {run.defense} · clean run"


def mean_name(c: Contrast) -> str:
    """The cells that a mean is over, in words."""
    assert isinstance(c.place, CellMean)
    return f"{c.place.of} {c.place.name} · {c.place.axis}, mean over {plural(c.place.cells, 'cell')}"


def finding_text(v: Verdict) -> str:
    """What a finding of a score means."""
    lower = v.contrast.difference < 0
    if v.outcome == "unknown":
        return f"the score {'fell' if lower else 'rose'}, which with one seed may be noise or a change"
    if v.outcome == "changed":
        return "changed, within noise or by less than matters"
    if v.contrast.kind == REFERENCE:
        return f"FedAvg's own accuracy {'fell' if lower else 'rose'}, which utility is measured against"
    if v.contrast.axis == "utility":
        return f"the model is {'less' if lower else 'more'} useful"
    return "weaker defense, or stronger attack" if lower else "weaker attack, or stronger defense"
