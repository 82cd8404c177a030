"""Which defense to take under a cut, and why, in sentences that claim no more than the board has measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fedarena.board.board import Board, Cell
from fedarena.board.standing import Cut, Score, Standing, standings, threats_on
from fedarena.board.words import asked, counts, parties, score, several, times, unmeasured
from fedarena.core.text.mean import Mean, mean

WITHSTOOD = 0.5
"""Of an attack that leaves every defense less than this it is said that nobody withstands it."""

LISTED = 5
"""Names in a list before it is cut short."""


def advice(board: Board, cut: Cut | None = None, rows: Sequence[Standing] | None = None) -> list[str]:
    """Sentences for a reader who has these threats: what to take and why, what is as good, what nobody withstands.

    Args:
        rows: `standings(board, cut)`, where the caller has them.
    """
    cut = cut or threats_on(board)
    rows = standings(board, cut) if rows is None else rows
    ranked = [row for row in rows if row.rank is not None]
    if not rows:
        return ["No records: nothing was measured, so nothing can be said about any defense."]
    if not ranked:
        told = [_nobody_ranked(board, cut, rows)]
    else:
        told = [
            _choice(board, cut, ranked),
            *_weak(cut, ranked),
            *_next(board, cut, ranked),
            _as_good(ranked),
            *_without_rank(rows),
        ]
    told += _unfinished(board, cut)
    told += _breaks_everyone(board, cut)
    every = Cut(problems=cut.problems) if cut == threats_on(board, cut.problems) else cut
    lacking = unmeasured(board, every) if board.cells else []
    if lacking and any(cut.has(c) for c in board.cells):
        told.append(f"Nothing is said about {_or(lacking)}: no attack that counts comes from there.")
    return [sentence for sentence in told if sentence]


def difference(one: Score, other: Score) -> Mean | None:
    """Paired over the seeds that both have: one − other, with its 95 % interval; None where they share no seed."""
    shared = sorted(set(one.by_seed) & set(other.by_seed))
    return mean([one.by_seed[s] - other.by_seed[s] for s in shared]) if shared else None


def apart(found: Mean | None) -> bool:
    """Whether an interval of differences leaves out 0; without an interval nothing can be told apart."""
    # Differences of some 1e-16 come from adding in another order.
    return found is not None and found.half is not None and abs(found.value) > found.half + 1e-9


def _nobody_ranked(board: Board, cut: Cut, rows: Sequence[Standing]) -> str:
    cells = [c for c in board.cells if cut.has(c)]
    begins = f"No defense can be recommended for {asked(cut)}: none has a rank"
    if cells and all(c.status in ("failed", "missing") for c in cells):
        told = f", for none of its {len(cells)} cells gave a result"
    elif not cells and cut.axes != ("utility",):
        told = ", for no attack that counts poses these threats"
    else:
        told = ""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(row.unranked, []).append(row.defense)
    return f"{begins}{told} ({'; '.join(f'{_and(whom)}: {why}' for why, whom in reasons.items())})."


ENOUGH = 0.5
"""A score below it is a threat that a defense does not withstand."""


def _choice(board: Board, cut: Cut, ranked: Sequence[Standing]) -> str:
    best = ranked[0]
    axes = [f"{name} {score(getattr(best, name))}" for name in cut.axes]
    overall = f"overall {score(best.overall)}, the mean of {_and(axes)}" if len(axes) > 1 else axes[0]
    take = f"take {best.defense}"
    if best.defense == "fedavg":
        take = "no defense ranks above plain fedavg, which is none: take fedavg, or a defense that is not on this board"
    elif len(axes) > 1 and not any(_withstands(row, cut) for row in ranked):
        take = f"no defense here keeps {ENOUGH} of each; the highest overall score has {best.defense}"
    told = f"For {asked(cut)}: {take} ({overall})."
    for name in cut.axes:
        found: Score = getattr(best, name)
        if found.worst is not None:
            told += f" Its worst case of {name} is {_by(board, found.worst)}, which leaves {score(found)}."
    calm = [name for name in cut.axes if name != "utility" and not getattr(best, name).cells]
    if calm:
        told += f" Of the attacks on {_and(calm)} none could start against it, which is no proof that none can."
    told += f" {_cost(best)}"
    marks = list(dict.fromkeys(m for h in board.honest if h.defense == best.defense for m in h.marks))
    return told + (f" Beside its numbers stands: {'; '.join(marks)}." if marks else "")


def _withstands(row: Standing, cut: Cut) -> bool:
    """Whether every score that is asked about is high enough to speak of."""
    found = [getattr(row, name).value for name in cut.axes]
    return all(score is not None and score.value >= ENOUGH for score in found)


def _cost(row: Standing) -> str:
    if row.bytes is None and row.seconds is None:
        return "What it costs was not measured."
    told = [f"{times(row.bytes)} FedAvg's bytes"] if row.bytes is not None else []
    told += [f"{times(row.seconds)} its training time"] if row.seconds is not None else []
    return f"It costs {_and(told)}."


def _weak(cut: Cut, ranked: Sequence[Standing]) -> list[str]:
    """A warning for each score that a mean has hidden, and who has more of it."""
    told = []
    for name in cut.axes:
        found: Score = getattr(ranked[0], name)
        if _value(found) >= WITHSTOOD:
            continue
        most = max(ranked, key=lambda row: _value(getattr(row, name)))
        more: Score = getattr(most, name)
        told.append(
            f"Beware: its {name} is {score(found)}. Of all with a rank {most.defense} has the most, {score(more)}, "
            f"with overall {score(most.overall)}."
            if _value(more) > _value(found) + 0.0005
            else f"Beware: its {name} is {score(found)}, and none with a rank has more."
        )
    return told


def _next(board: Board, cut: Cut, ranked: Sequence[Standing]) -> list[str]:
    if len(ranked) < 2:
        return ["It is the only defense with a rank, so there is nothing to compare it with."]
    best, other = ranked[:2]
    lower = difference(best.overall, other.overall)
    losses = {name: _value(getattr(best, name)) - _value(getattr(other, name)) for name in cut.axes}
    most = max(losses, key=lambda name: losses[name])
    told = f"The next, {other.defense}, has overall {score(other.overall)}"
    told += f", {_signed(lower)} lower" if lower is not None and lower.value > 0.0005 else ""
    if round(_value(best.overall), 3) == round(_value(other.overall), 3):  # as ranks are made
        told += ", the same to three digits: cost decides"
    if losses[most] > 0.0005:
        theirs: Score = getattr(other, most)
        by = f" after {_by(board, theirs.worst)}" if theirs.worst is not None else ""
        told += f"; it loses most in {most}, where it has {score(theirs)}{by}"
    gains = [f"{name} {score(getattr(other, name))}" for name in cut.axes if losses[name] < -0.0005]
    told += f", and is the better one in {_and(gains)}" if gains else ""
    return [f"{told}. {_cost(other).replace('It costs', 'It would cost', 1)}"]


def _as_good(ranked: Sequence[Standing]) -> str:
    best, others = ranked[0], ranked[1:]
    if not others:
        return ""
    differences = {row.defense: difference(best.overall, row.overall) for row in others}
    bare = [name for name, found in differences.items() if found is None or found.half is None]
    if len(bare) == len(others):
        why = "One seed" if len(best.overall.by_seed) == 1 else "Too few seeds in common"
        return f"{why}: there is no interval, so nobody can say which of these differences are more than chance."
    told = {name: found for name, found in differences.items() if found is not None and name not in bare}
    counted = {found.seeds for found in told.values()}
    over = f"Over {min(counted)}{f' to {max(counted)}' if len(counted) > 1 else ''} paired seeds"
    same = [f"{name} ({_signed(found)})" for name, found in told.items() if not apart(found)]
    ahead = [f"{name} ({_signed(found)})" for name, found in told.items() if apart(found) and found.value < 0]
    sentences = [
        f"{over} the 95 % interval of its lead includes 0 for {_and(_short(same))}: they cannot be told apart from it."
        if same
        else "",
        f"On the seeds that they share, it is behind {_and(_short(ahead))}." if ahead else "",
        ""
        if same or ahead
        else f"{over} the 95 % interval of its lead leaves out 0 for each of the others with a rank.",
        f"For {_and(_short(bare))} there are too few seeds in common to say so." if bare else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _without_rank(rows: Sequence[Standing]) -> list[str]:
    """Defenses that have no rank, for a reader who looks for them."""
    without = [row.defense for row in rows if row.rank is None]
    return [f"Without a rank, and so not compared: {_and(_short(without))}."] if without else []


def _unfinished(board: Board, cut: Cut) -> list[str]:
    """How much of what was planned is not there."""
    statuses = [status for c in board.cells if cut.has(c) for status in c.statuses.values()]
    if not (missing := statuses.count("missing")):
        return []
    return [f"Beware: {missing} of {len(statuses)} trials are missing, and what they say may change all of this."]


def _breaks_everyone(board: Board, cut: Cut) -> list[str]:
    """Attacks after which the best defense has less than WITHSTOOD left."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for c in board.cells:
        if cut.has(c) and c.status not in ("failed", "missing"):
            groups.setdefault(c.attempt, []).append(c)
    everyone = {c.defense for c in board.cells if cut.has(c) and not c.found_by}
    found: list[tuple[float, str]] = []
    for (problem, attack, party, knows), cells in groups.items():
        left: dict[str, float] = {}
        for c in cells:
            value = fmean(c.scores.values()) if c.scores else 1.0
            left[c.defense] = min(value, left.get(c.defense, 1.0))
        best = max(left, key=lambda name: left[name])
        if left[best] < WITHSTOOD:
            where = f" on {problem}" if several(board) else ""
            most = f"best: {best}, {left[best]:.2f}" if left[best] >= 0.005 else "all are left with 0.00"
            most += f"; {len(left)} of {len(everyone)} defenses met it" if set(left) < everyone else ""
            found.append((left[best], f"{attack} by {_who(party, knows)}{where} ({most})"))
    if not found:
        return []
    told = [text for _, text in sorted(found)]
    return [f"Nobody withstands, that is keeps {WITHSTOOD} against: {'; '.join(_short(told))}."]


def summary(board: Board, cut: Cut, rows: Sequence[Standing]) -> str:
    """How much there is: defenses, cells by status, curious parties met."""
    total: dict[str, int] = {}
    for row in rows:
        for status, n in row.counts.items():
            total[status] = total.get(status, 0) + n
    who = parties(board, cut)
    curious = f"; inference by {_and([f'the {p}' for p in who])}" if who else ""
    return f"{len(rows)} defenses, cells: {counts(total)}{curious}"


def _by(board: Board, c: Cell) -> str:
    where = f" on {c.problem}" if several(board) else ""
    by = f", found by {c.found_by}" if c.found_by else ""
    return f"{c.attack} by {_who(c.party, c.knows)} in {c.form} form{where}{by}"


def _who(party: str, knows: str) -> str:
    return f"corrupted clients ({knows})" if knows else f"the {party}"


def _value(s: Score) -> float:
    return s.value.value if s.value is not None else 0.0


def _signed(m: Mean | None) -> str:
    """A difference; it may be beyond [0, 1], so nothing is cut."""
    if m is None:
        return ""
    return f"{m.value:.3f}" if m.half is None else f"{m.value:.3f} ± {m.half:.3f}"


def _short(words: Sequence[str]) -> list[str]:
    rest = len(words) - LISTED
    return [*words[:LISTED], f"{rest} more"] if rest > 0 else list(words)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
