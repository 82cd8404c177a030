"""Two boards → what changed, and what of it a person must look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fedarena.board.board import Board, BySeed, Cell, Honest
from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.exact import (
    NOT_MEASURED,
    Found,
    another_experiment,
    arena_changes,
    cell_changes,
    honest_changes,
)
from fedarena.board.gate.inert import NO_ATTACK, NO_DEFENSE, harmless_now, undefended_now
from fedarena.board.gate.judge import Verdict, judge
from fedarena.board.gate.means import Mean, means
from fedarena.core.text.plural import plural

Place = tuple[str, ...]

REFERENCE = "FedAvg's accuracy"
"""The kind of a contrast of FedAvg's honest run. Its utility is 1 whatever it learns, so its accuracy is compared."""


@dataclass(frozen=True)
class Rules:
    """What counts as a finding.

    Attributes:
        false_alarm: the chance that any score of a board is a finding though nothing changed. Half of it is for single
            scores, half for means over many cells.
        effects: the least change that matters: of `privacy`, `integrity` and `utility` for single scores, of `mean`
            for means.
        losses_only: scores that rose are no findings.
        exact: any score of a cell or honest run that is not identical is a finding.
    """

    false_alarm: float = 0.05
    effects: dict[str, float] = field(
        default_factory=lambda: {"privacy": 0.1, "integrity": 0.1, "utility": 0.05, "mean": 0.02}
    )
    losses_only: bool = False
    exact: bool = False


@dataclass(frozen=True)
class Item:
    """A cell, an honest run or a mean over cells of the base board, or something new.

    Attributes:
        group: cell, honest, mean or board.
        name: where, in words.
        found: what changed besides the score.
        verdict: of its score; None where nothing was compared.
        reason: why there is no score: n/a on both boards, or failed on both.
        command: makes it anew; empty for means.
    """

    group: str
    name: str
    found: tuple[Found, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""
    command: str = ""

    @property
    def findings(self) -> list[str]:
        """What a person must look at, in words; empty where all is well."""
        told = [f.words for f in self.found if f.finding]
        if self.verdict is not None and self.verdict.finding:
            told.append(changed_words(self.verdict))
        return told


@dataclass(frozen=True)
class Comparison:
    """What became of everything on the base board.

    Attributes:
        base, new: what the boards are called.
        items: in the order of the base board; what concerns boards as a whole comes first.
        added: cells and honest runs that only the new board has, in words.
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
    def counts(self) -> dict[str, int]:
        """Scores of cells and honest runs by outcome; `none`: no score on either board."""
        found = dict.fromkeys(("identical", "noise", "loss", "gain", "unknown", "changed", "none"), 0)
        for item in self.items:
            if item.group in ("cell", "honest"):
                found[item.verdict.outcome if item.verdict else "none"] += 1
        return found


def compare(base: Board, new: Board, rules: Rules | None = None) -> Comparison:
    """Match cells by place and honest runs by problem and defense, test scores, compare the rest."""
    rules = rules or Rules()
    cells = {c.place: c for c in new.cells}
    honest = {(h.problem, h.defense): h for h in new.honest}
    pairs = [(c, cells.get(c.place)) for c in base.cells if c.status != "missing"]
    runs = [(h, honest.get((h.problem, h.defense))) for h in base.honest if h.status != "missing"]
    of_cells = {c.place: _cell_contrast(c, n, rules) for c, n in pairs}
    of_runs = {(h.problem, h.defense): _honest_contrast(h, n, rules) for h, n in runs}
    single = [c for c in (*of_cells.values(), *of_runs.values()) if c is not None]
    scored = [(contrast, c) for c, _ in pairs if (contrast := of_cells[c.place]) is not None]
    rate = rules.false_alarm / 2
    judged = judge(single, rate, rules.losses_only)
    if rules.exact:
        judged = [replace(v, outcome="changed") if v.outcome == "noise" else v for v in judged]
    verdicts = {v.contrast.place: v for v in judged}
    together = judge(means(scored, rules.effects["mean"]), rate, rules.losses_only, means=True)
    open_now, idle = undefended_now(base, new), harmless_now(base, new)
    items = [
        *_boards(base, new),
        *_arenas(base, new),
        *(
            _honest_item(h, n, verdicts.get((h.problem, h.defense)), (h.problem, h.defense) in open_now)
            for h, n in runs
        ),
        *(_cell_item(c, n, verdicts.get(c.place), c.place in idle) for c, n in pairs),
        *(Item("mean", mean_words(v.contrast), verdict=v) for v in together),
    ]
    known = {c.place for c, _ in pairs} | {(h.problem, h.defense) for h, _ in runs}
    added = [
        *(honest_words(h) for h in new.honest if h.status != "missing" and (h.problem, h.defense) not in known),
        *(cell_words(c) for c in new.cells if c.status != "missing" and c.place not in known),
    ]
    return Comparison(_called(base), _called(new), rules, tuple(items), tuple(added))


def cell_words(c: Cell) -> str:
    """Where a cell is."""
    return f"{c.problem} · {c.defense} · {c.attack} · {c.threat}"


def honest_words(h: Honest) -> str:
    """Where an honest run is."""
    return f"{h.problem} · {h.defense} · nobody poisons"


def mean_words(c: Contrast) -> str:
    """What a mean is over."""
    assert isinstance(c.place, Mean)
    return f"{c.place.of} {c.place.name} · {c.place.axis}, mean over {plural(c.place.cells, 'cell')}"


def changed_words(v: Verdict) -> str:
    """What a finding of a score says."""
    lower = v.contrast.difference < 0
    if v.outcome == "unknown":
        return f"the score {'fell' if lower else 'rose'}, with one seed: noise or a change, that cannot be told"
    if v.outcome == "changed":
        return "changed, within noise or by less than matters"
    if v.contrast.kind == REFERENCE:
        return f"FedAvg's own accuracy {'fell' if lower else 'rose'}, which utility is measured against"
    if v.contrast.axis == "utility":
        return f"the model is {'less' if lower else 'more'} useful"
    return "weaker defense, or stronger attack" if lower else "weaker attack, or stronger defense"


def _called(board: Board) -> str:
    commit = board.made.get("commit")
    return f"{board.suite} ({commit})" if commit else board.suite


def _boards(base: Board, new: Board) -> list[Item]:
    """What there is to say about a board as a whole, such as records that are damaged."""
    found = []
    for board, role in ((base, "base"), (new, "new")):
        # What the new board alone failed to measure is told cell by cell.
        failures = _failures(board) if _failures(base) else []
        found += [Found(f"the {role} board {what}") for what in _empty(board) or failures]
        found += [Found(f"the {role} board: {note}", finding=False) for note in board.notes]
    if more := [str(seed) for seed in new.seeds if seed not in base.seeds]:
        found.append(Found(f"only the new board has seeds {', '.join(more)}: they are not compared", finding=False))
    return [Item("board", "the boards as a whole", tuple(found))] if found else []


def _empty(board: Board) -> list[str]:
    """That a board has no score at all, in words; emptiness is equal to emptiness, and would pass."""
    if not board.cells and not board.honest:
        return ["has no cells"]
    measured = any(c.scores for c in board.cells) or any(h.utility for h in board.honest)
    return [] if measured else ["measured nothing: it has no score at all"]


def _failures(board: Board) -> list[str]:
    """That a board's cells, or its honest runs, are a row of failures, in words; they are equal to each other too."""
    found = []
    lost = sum(map(_lost, board.cells))
    if lost and not any(c.scores for c in board.cells):
        found.append(f"measured nothing in any cell: {lost} of {len(board.cells)} failed or have no score")
    broken = [h for h in board.honest if h.status in NOT_MEASURED]
    if broken and not any(h.accuracy for h in board.honest if h not in broken):
        found.append(f"measured no honest run: {len(broken)} of {len(board.honest)} failed or are missing")
    return found


def _lost(c: Cell) -> bool:
    """Whether a seed of a cell was not measured, and should have been.

    That no attack could start is a result, and so is an honest run that learned nothing to break.
    """
    scoreless = {s for s, status in c.statuses.items() if status == "ok" and s not in c.scores}
    return any(s in NOT_MEASURED for s in c.statuses.values()) or (c.axis == "privacy" and bool(scoreless))


def _arenas(base: Board, new: Board) -> list[Item]:
    """What changed of the problems."""
    there = {a.name: a for a in new.arenas}
    found = [(a.name, arena_changes(a, there.get(a.name))) for a in base.arenas]
    return [Item("board", f"problem {name}", tuple(told)) for name, told in found if told]


def _contrast(
    place: Place, kind: str, axis: str, base: BySeed, new: BySeed, effects: dict[str, float]
) -> Contrast | None:
    seeds = tuple(sorted(set(base) & set(new)))
    if not seeds:
        return None
    return Contrast(
        place, kind, axis, seeds, tuple(base[s] for s in seeds), tuple(new[s] for s in seeds), effects[axis]
    )


def _cell_contrast(base: Cell, new: Cell | None, rules: Rules) -> Contrast | None:
    if new is None or another_experiment(base, new):
        return None
    return _contrast(base.place, base.goal or base.axis, base.axis, base.scores, new.scores, rules.effects)


def _honest_contrast(base: Honest, new: Honest | None, rules: Rules) -> Contrast | None:
    if new is None:
        return None
    place = (base.problem, base.defense)
    if base.defense == "fedavg":
        return _contrast(place, REFERENCE, "utility", base.accuracy, new.accuracy, rules.effects)
    return _contrast(place, "utility", "utility", base.utility, new.utility, rules.effects)


def _cell_item(base: Cell, new: Cell | None, verdict: Verdict | None, idle: bool) -> Item:
    reason = f"{base.status}: {base.reason}" if verdict is None else ""
    found = [*cell_changes(base, new), *([Found(NO_ATTACK)] if idle else [])]
    return Item("cell", cell_words(base), tuple(found), verdict, reason, base.command)


def _honest_item(base: Honest, new: Honest | None, verdict: Verdict | None, inert: bool) -> Item:
    reason = f"{base.status}: {base.reason}" if verdict is None else ""
    found = [*honest_changes(base, new), *([Found(NO_DEFENSE)] if inert else [])]
    return Item("honest", honest_words(base), tuple(found), verdict, reason, base.command)
