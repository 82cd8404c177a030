"""What a comparison says, in words that every output shares."""

from __future__ import annotations

from statistics import fmean

from fedarena.board.gate.compare import Comparison, Item


def verdict(c: Comparison) -> str:
    """One line: whether the gate is passed, and what was found."""
    if not c.findings:
        counts = c.counts
        if not any(counts[name] for name in ("noise", "gain", "loss")):
            return f"Passed: all {counts['identical']} scores are identical."
        return "Passed: no score changed by more than its noise and by what matters, and nothing is missing."
    outcomes = [i.verdict.outcome for i in c.findings if i.verdict is not None and i.verdict.finding]
    told = [
        _count(outcomes.count("loss"), "score fell", "scores fell"),
        _count(outcomes.count("gain"), "score rose", "scores rose"),
        _count(outcomes.count("unknown"), "score of one seed moved", "scores of one seed moved"),
        _count(outcomes.count("changed"), "score changed within noise", "scores changed within noise"),
        _count(sum(any(f.finding for f in i.found) for i in c.findings), "other finding", "other findings"),
    ]
    return f"Failed: {', '.join(t for t in told if t)}."


def caveats(c: Comparison) -> list[str]:
    """What a reader must know about the tests of this comparison."""
    rules = c.rules
    told = []
    scored = [i.verdict for i in c.items if i.group != "mean" and i.verdict is not None]
    one = [v for v in scored if len(v.contrast.seeds) == 1]
    if scored and len(one) == len(scored):
        told.append(
            "One seed: no noise can be known, so nothing was tested and no false-alarm rate can be stated. Identical"
            " scores did not change, which is sure; of others only those that moved by at least what matters are listed"
            " as findings, be it noise or a change. Three to five seeds let the gate tell them apart."
        )
        return [*told, *located(c)]
    told.append(
        f"Where nothing changed, the tests of scores find something on at most {rules.false_alarm:.3g} of boards"
        f" (half for single scores, half for means over cells; p is Holm's, over the whole board), and a change counts"
        f" from {_effects(rules.effects)}. What is not a test of scores is compared exactly."
    )
    if rules.losses_only:
        told.append("Only losses were asked for: scores that rose are no findings.")
    if rules.exact:
        told.append("No score was to change: each that is not identical is a finding.")
    if one:
        told.append(f"{_count(len(one), 'score has', 'scores have')} one seed, and the rate says nothing about them.")
    return [*told, *located(c)]


def located(c: Comparison) -> list[str]:
    """Where the code changed, if only scores of one defense or of one attack did; else nothing.

    The same code gives the same scores to the last digit. Scores that differ, be it within their noise, among others
    that do not, tell of a change that no test of three seeds can.
    """
    scored = [i.verdict for i in c.items if i.group != "mean" and i.verdict is not None]
    places = [v.contrast.place for v in scored if v.outcome != "identical"]
    if not places or len(places) == len(scored):
        return []
    known = [p for p in places if isinstance(p, tuple)]
    defenses, attacks = ({p[i] if len(p) > i else "" for p in known} for i in (1, 2))
    alone = [next(iter(names)) for names in (defenses, attacks) if len(names) == 1]
    if not any(alone):
        return []
    name = next(n for n in alone if n)
    return [
        f"{len(places)} of {len(scored)} scores changed, of {name} alone, and the others are identical: what {name}"
        " computes or draws is not what it was, however the tests came out."
    ]


def tally(c: Comparison) -> str:
    """How many scores came out how."""
    counts = c.counts
    parts = [
        f"{counts['identical']} identical",
        f"{counts['noise'] + counts['changed']} changed within noise or by less than matters",
        f"{counts['loss']} lower",
        f"{counts['gain']} higher",
        *([f"{counts['unknown']} moved, of one seed"] if counts["unknown"] else []),
        f"{counts['none']} with no score to compare (n/a, failed, missing)",
    ]
    return f"Scores of cells and honest runs: {', '.join(parts)}. New: {len(c.added)}."


def notes(c: Comparison) -> list[str]:
    """Differences that are no findings, alike ones together."""
    places: dict[str, list[str]] = {}
    for item in c.items:
        for found in item.found:
            if not found.finding:
                places.setdefault(found.words, []).append(item.name)
    return [f"{words}: {names[0]}{_more(len(names) - 1)}" for words, names in places.items()]


def numbers(item: Item) -> tuple[str, str, str, str, str, str]:
    """Base, new, difference, its 95 % interval, adjusted p and the effect that matters; dashes where there is none."""
    v = item.verdict
    if v is None:
        return ("-",) * 6
    c = v.contrast
    interval = "-" if v.half is None else f"[{c.difference - v.half:+.3f}, {c.difference + v.half:+.3f}]"
    p = "-" if v.p is None else f"{v.p:.2g}"
    return f"{fmean(c.base):.3f}", f"{fmean(c.new):.3f}", f"{c.difference:+.3f}", interval, p, f"{c.effect:g}"


NUMBERS = ("base", "new", "difference", "95 % interval", "p", "matters from")


def _effects(effects: dict[str, float]) -> str:
    return ", ".join(f"{size:g} ({name})" for name, size in effects.items())


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}" if n else ""


def _more(n: int) -> str:
    return f" and {n} more" if n else ""
