"""What changed in a cell besides its score."""

from __future__ import annotations

from statistics import fmean

from fedarena.board.board import BoardCell
from fedarena.board.gate.change import Change, fewer_seeds, lost_scores, seeds_text, status_change


def cell_changes(base: BoardCell, new: BoardCell | None) -> list[Change]:
    """The changes of a cell besides its score; `new` is None where the new board does not have the cell."""
    if base.status == "missing":
        return []
    if new is None or new.status == "missing":
        return [Change("missing: the new board does not have this cell")]
    if what := another_experiment(base, new):
        return [Change(f"another experiment: {what}, so that its score is not compared")]
    changes = [
        *fewer_seeds(_measured(base), _measured(new)),
        *_statuses(base, new),
        *lost_scores(set(base.scores) - set(new.scores) - _explained_seeds(base, new), "score"),
        *_digests(base, new),
        *_role(base, new),
    ]
    if base.status == new.status == "failed":
        changes.append(Change("failed on both boards", finding=False))
    return changes + _versions(base, new)


def another_experiment(base: BoardCell, new: BoardCell) -> str:
    """The difference between cells of different experiments; empty for the same experiment, as far as is known.

    The options of cells that were refused are not known.
    """
    for name, was, now in (("axis", base.axis, new.axis), ("goal", base.goal, new.goal)):
        if was != now:
            return f"{name} {was or 'none'} → {now or 'none'}"
    for was, now in ((base.settings, new.settings), (base.defense_settings, new.defense_settings)):
        if was and now and was != now:
            return "options or problem differ"
    return ""


def _measured(c: BoardCell) -> set[int]:
    """Seeds that are not missing."""
    return {seed for seed, status in c.statuses.items() if status != "missing"}


def _explained_seeds(base: BoardCell, new: BoardCell) -> set[int]:
    """Seeds whose loss other changes report: they are missing, or their status changed."""
    return {seed for seed in _measured(base) if base.statuses[seed] != new.statuses.get(seed)}


def _statuses(base: BoardCell, new: BoardCell) -> list[Change]:
    """Changes of status of seeds that both boards have; seeds with the same change are grouped."""
    groups: dict[tuple[str, str], set[int]] = {}
    for seed in sorted(_measured(base) & _measured(new)):
        was, now = base.statuses[seed], new.statuses[seed]
        if was != now:
            groups.setdefault((was, now), set()).add(seed)
    changes = []
    for (was, now), seeds in groups.items():
        scores = [new.scores[seed] for seed in sorted(seeds) if seed in new.scores]
        change = status_change(was, now, new.reason, fmean(scores) if scores else None)
        if seeds != _measured(new):
            change = Change(f"{seeds_text(seeds)}: {change.words}", change.finding)
        changes.append(change)
    return changes


def _digests(base: BoardCell, new: BoardCell) -> list[Change]:
    """Digests of options that only one board has, though the other one ran the cell."""
    changes = []
    digests = (("options", base.settings, new.settings), ("defense", base.defense_settings, new.defense_settings))
    for name, was, now in digests:
        if was and not now and _was_run(new):
            changes.append(Change(f"perhaps another experiment: the digest of its {name} is gone"))
        elif now and not was and _was_run(base):
            changes.append(Change(f"perhaps another experiment: the base has no digest of its {name}", finding=False))
    return changes


def _was_run(c: BoardCell) -> bool:
    """Whether any seed was tried, and not refused."""
    return any(status not in ("n/a", "missing") for status in c.statuses.values())


def _role(base: BoardCell, new: BoardCell) -> list[Change]:
    """Changes of a cell's part in ranks that leave its score as it is."""
    changes = []
    if base.counts != new.counts:
        changes.append(Change(f"it counts in {'scores' if new.counts else 'no score'} now"))
    if base.found_by != new.found_by:
        changes.append(Change(f"contributed by {base.found_by or 'this package'} → {new.found_by or 'this package'}"))
    return changes


def _versions(base: BoardCell, new: BoardCell) -> list[Change]:
    if not base.versions or not new.versions or base.versions == new.versions:
        return []
    names = [n for n in sorted({*base.versions, *new.versions}) if base.versions.get(n) != new.versions.get(n)]
    text = ", ".join(f"{n} {base.versions.get(n, '-')} → {new.versions.get(n, '-')}" for n in names)
    return [Change(f"versions of methods: {text}", finding=False)]
