"""The sentences and numbers of a comparison, which every output shares."""

from __future__ import annotations

from statistics import fmean

from fedarena.board.gate.comparison import Comparison, Item

NUMBERS = ("base", "new", "difference", "95 % interval", "p", "matters from")
"""Titles of `numbers`."""


def verdict(c: Comparison) -> str:
    """One line: whether the gate is passed, and what was found."""
    if not c.findings:
        counts = c.counts
        if not any(counts[name] for name in ("noise", "gain", "loss")):
            return f"Passed: all {counts['identical']} scores are identical."
        return "Passed: no score changed by more than its noise and by an effect that matters, and nothing is missing."
    outcomes = [i.verdict.outcome for i in c.findings if i.verdict is not None and i.verdict.finding]
    parts = [
        _count(outcomes.count("loss"), "score fell", "scores fell"),
        _count(outcomes.count("gain"), "score rose", "scores rose"),
        _count(outcomes.count("unknown"), "score with one seed moved", "scores with one seed moved"),
        _count(outcomes.count("changed"), "score changed within noise", "scores changed within noise"),
        _count(sum(any(change.finding for change in i.changes) for i in c.findings), "other finding", "other findings"),
    ]
    return f"Failed: {', '.join(text for text in parts if text)}."


def caveats(c: Comparison) -> list[str]:
    """What a reader must know about the tests of this comparison."""
    one_seed = [v for v in c.verdicts if len(v.contrast.seeds) == 1]
    if one_seed and len(one_seed) == len(c.verdicts):
        lines = [
            "One seed: the noise is unknown, so nothing was tested and no false-alarm rate holds. Identical scores"
            " certainly did not change. Other scores are findings if they moved by at least the effect that matters,"
            " whether by noise or by a change. Three to five seeds let the gate distinguish the two."
        ]
        return lines + localized(c)
    lines = [
        f"If nothing changed, the tests of scores have a finding on at most {c.rules.false_alarm:.3g} of boards"
        " (half for single scores, half for means over cells; p is adjusted by Holm's method over the whole board)."
        f" A change counts from {_effects(c.rules.effects)}. Everything but scores is compared exactly."
    ]
    if c.rules.losses_only:
        lines.append("Only losses count: scores that rose are no findings.")
    if c.rules.exact:
        lines.append("No score may change: each one that is not identical is a finding.")
    if one_seed:
        count = _count(len(one_seed), "score has", "scores have")
        lines.append(f"{count} one seed; the false-alarm rate does not cover them.")
    return lines + localized(c)


def localized(c: Comparison) -> list[str]:
    """The defense or attack whose code changed, if only its scores did; otherwise nothing.

    The same code gives exactly the same scores. If some scores differ, even within their noise, and the others do not,
    they reveal a change that no test with three seeds can.
    """
    changed = [v.contrast.place for v in c.verdicts if v.outcome != "identical"]
    if len(changed) == len(c.verdicts):
        return []
    name = _common_name([place for place in changed if isinstance(place, tuple)])
    if not name:
        return []
    return [
        f"{len(changed)} of {len(c.verdicts)} scores changed, only of {name}, and the others are identical:"
        f" {name} computes or draws something else than before, whatever the tests say."
    ]


def _common_name(places: list[tuple[str, ...]]) -> str:
    """The defense that all places have, or else the attack; empty where they have neither in common."""
    for i in (1, 2):
        names = {place[i] if len(place) > i else "" for place in places}
        if len(names) == 1 and (name := names.pop()):
            return name
    return ""


def tally(c: Comparison) -> str:
    """The number of scores with each outcome."""
    counts = c.counts
    parts = [
        f"{counts['identical']} identical",
        f"{counts['noise'] + counts['changed']} changed within noise or by less than matters",
        f"{counts['loss']} lower",
        f"{counts['gain']} higher",
        *([f"{counts['unknown']} moved, with one seed"] if counts["unknown"] else []),
        f"{counts['none']} with no score to compare (n/a, failed, missing)",
    ]
    return f"Scores of cells and clean runs: {', '.join(parts)}. New: {len(c.added)}."


def notes(c: Comparison) -> list[str]:
    """Changes that are no findings, equal ones together."""
    names: dict[str, list[str]] = {}
    for item in c.items:
        for change in item.changes:
            if not change.finding:
                names.setdefault(change.words, []).append(item.name)
    return [f"{words}: {where[0]}{_more(len(where) - 1)}" for words, where in names.items()]


def numbers(item: Item) -> tuple[str, str, str, str, str, str]:
    """Base, new, difference, its 95 % interval, adjusted p and the effect that matters; dashes where there is none."""
    v = item.verdict
    if v is None:
        return ("-",) * 6
    c = v.contrast
    interval = "-" if v.half is None else f"[{c.difference - v.half:+.3f}, {c.difference + v.half:+.3f}]"
    p = "-" if v.p is None else f"{v.p:.2g}"
    return f"{fmean(c.base):.3f}", f"{fmean(c.new):.3f}", f"{c.difference:+.3f}", interval, p, f"{c.effect:g}"


def _effects(effects: dict[str, float]) -> str:
    return ", ".join(f"{size:g} ({name})" for name, size in effects.items())


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}" if n else ""


def _more(n: int) -> str:
    return f" and {n} more" if n else ""
