"""A board as a web page: one file, which asks nothing of the network.

The page holds the board as JSON and works out scores and ranks itself (page/page.js), so that a reader can choose
threats; a test holds it to `fedarena.board.standing`. Without JavaScript the advice and the ranking are there all the
same. Text of others (a plug-in's name, an exception's) cannot run: it is escaped here, becomes text nodes there, and
the page's policy admits no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from fedarena import goals
from fedarena.board.advice import advice, summary
from fedarena.board.board import STATUSES, Board, BySeed, Cell, Honest
from fedarena.board.standing import Cut, Score, Standing, standings, threats_on, useful
from fedarena.board.thumbnails import strip
from fedarena.board.words import (
    HOW,
    NOTHING,
    average,
    case,
    counts,
    labelled,
    made,
    notes,
    parties,
    score,
    seeds,
    several,
    times,
    unranked,
)
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core.text.mean import mean, t_quantile
from fedarena.core.text.numbers import level, percent, quality
from fedarena.core.text.plural import plural
from fedarena.core.threat import EVERYONE, KNOWLEDGE
from fedarena.goals.cell import Cell as SummaryCell
from fedarena.records import pictures as gallery

PICTURES = 6_000_000
"""Bytes of pictures in a page, at most; the rest is left out, and the page says so."""

STOPS = ((0, 34, 78), (67, 78, 108), (125, 124, 120), (188, 175, 111), (254, 232, 56))
"""Colours of 0, ¼, … 1: lightness grows all the way, and blue to yellow can be told apart by the colour-blind."""

LEVELS = 10

KNOWN = {"own": "their own data (own)", "omniscient": "every honest upload (omniscient)"}
"""What corrupted clients know, as the page names it."""


def page(board: Board, cut: Cut | None = None, folder: Path | None = None, commands: Sequence[str] = ()) -> str:
    """The page.

    Args:
        cut: what is chosen at first; of several problems the page can choose all or one.
        folder: where the records are; their pictures are taken from it.
        commands: what made the page.
    """
    cut = cut or threats_on(board)
    if len(cut.problems) > 1:
        board, cut = _only(board, cut.problems), Cut(cut.parties, cut.knows)
    rows = standings(board, cut)
    pictures, shown, left_out = _pictures(board, folder)
    told = notes(board, cut, rows)
    told += (
        [f"pictures of {plural(left_out, 'cell')} are left out, for the page would be too large"] if left_out else []
    )
    style, script = _asset("page.css") + heat_css(), _asset("page.js")
    about = f"{summary(board, cut, rows)}. Seeds: {seeds(board)}."
    parts = {
        "policy": escape(_policy(style, script)),
        "title": escape(board.title or board.suite or "Leaderboard"),
        "style": style,
        "about": f"<p>{escape(about)}</p>{_list([f'{a.name}: {a.told}' for a in board.arenas])}",
        "parties": _boxes("party", {p: p for p in EVERYONE}, cut.parties),
        "knows": _boxes("knows", KNOWN, cut.knows),
        "problems": _options(board, cut),
        "advice": _paragraphs(advice(board, cut, rows)),
        "heads": "".join(
            f'<th scope="col" data-key="{escape(key)}"{_hidden(key, cut)}>{escape(title)}</th>'
            for key, title in _columns(board)
        ),
        "rows": "\n".join(_row(board, cut, row) for row in rows),
        "notes": f'<section aria-labelledby="notes"><h2 id="notes">Notes</h2>{_list(told)}</section>' if told else "",
        "how": _paragraphs(HOW),
        "commands": "".join(f"<pre><code>{escape(c)}</code></pre>" for c in commands)
        + "<p>Each cell has its own, below its table of seeds.</p>",
        "made": f"<p>Made from records of {escape(made(board))}.</p>" if made(board) else "",
        "data": inert(_data(board, pictures, shown)),
        "script": script,
    }
    # In one pass, so that what is put in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def inert(data: Any) -> str:
    """JSON that cannot end its script element, whatever its strings hold."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def heat_css() -> str:
    """Classes h0 … h10: the colour of a score in tenths, with black or white text, whichever can be read better."""
    return "".join(
        f".h{i}{{background:{_hex(shade)} !important;color:{text} !important}}"
        for i in range(LEVELS + 1)
        for shade in [_shade(i / LEVELS)]
        for text in ["#000000" if contrast(shade, (0, 0, 0)) > contrast(shade, (255, 255, 255)) else "#ffffff"]
    )


Colour = tuple[int, int, int]


def contrast(one: Colour, other: Colour) -> float:
    """(L₁ + 0.05) / (L₂ + 0.05) with relative luminance L, the lighter first (WCAG 2.2)."""

    def luminance(colour: Colour) -> float:
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _shade(x: float) -> Colour:
    place = x * (len(STOPS) - 1)
    i = min(int(place), len(STOPS) - 2)
    mixed = [round(a + (b - a) * (place - i)) for a, b in zip(STOPS[i], STOPS[i + 1], strict=True)]
    return mixed[0], mixed[1], mixed[2]


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{c:02x}" for c in colour)


# -- the ranking, as it is without JavaScript ------------------------------------------------------------


def _columns(board: Board) -> list[tuple[str, str]]:
    """Keys, which page.js knows too, and titles."""
    found = [("rank", "rank"), ("defense", "defense")]
    found += [(name, name) for name in ("overall", "utility", "integrity", "privacy")]
    found += [(f"paper_{axis}", f"{axis}, paper form") for axis in ("integrity", "privacy")]
    found += [(f"average:{axis}", f"{axis}, mean over cells") for axis in ("integrity", "privacy")]
    found += [(f"party:{party}", f"privacy: {party}") for party in parties(board, Cut())]
    return [*found, ("bytes", "bytes / FedAvg's"), ("time", "time / FedAvg's"), ("cells", "cells")]


def _hidden(key: str, cut: Cut) -> str:
    """Columns of threats that are not asked about."""
    nobody = (key.endswith("integrity") and not cut.knows) or (key.endswith("privacy") and not cut.parties)
    other = key.startswith("party:") and key.removeprefix("party:") not in cut.parties
    return " hidden" if nobody or other else ""


_UNRANKED = ' class="unranked"'


def _row(board: Board, cut: Cut, row: Standing) -> str:
    cells = "".join(_table_cell(board, cut, row, key) for key, _ in _columns(board))
    return f"<tr{_UNRANKED if row.unranked else ''}>{cells}</tr>"


def _table_cell(board: Board, cut: Cut, row: Standing, key: str) -> str:
    hidden = _hidden(key, cut)
    if key == "defense":
        why = f"<small>{escape(unranked(row))}</small>" if row.unranked else ""
        return f'<th scope="row">{escape(labelled(row))}{why}</th>'
    if key == "rank":
        return f'<td class="rank">{row.rank if row.rank is not None else NOTHING}</td>'
    if key in ("bytes", "time"):
        return f"<td>{times(row.bytes if key == 'bytes' else row.seconds)}</td>"
    if key == "cells":
        return f"<td>{escape(counts(row.counts))}</td>"
    if key.startswith("average:"):
        return f"<td{hidden}>{average(getattr(row, key.removeprefix('average:')))}</td>"
    found: Score = (
        row.by_party.get(key.removeprefix("party:"), Score(None)) if key.startswith("party:") else getattr(row, key)
    )
    why = f"<small>{escape(case(found, several(board)))}</small>" if key in ("integrity", "privacy") else ""
    return f'<td class="{_look(found)}"{hidden}>{escape(score(found))}{why}</td>'


def _look(found: Score) -> str:
    if found.value is None:
        return "score"
    return f"score h{int(LEVELS * min(1.0, max(0.0, found.value.value)) + 0.5)}" if found.cells else "score hatched"


def _boxes(name: str, options: Mapping[str, str], chosen: Sequence[str]) -> str:
    return "".join(
        f'<label><input type="checkbox" name="{name}" value="{value}"{" checked" if value in chosen else ""}>'
        f"{escape(told)}</label>"
        for value, told in options.items()
    )


def _options(board: Board, cut: Cut) -> str:
    told = [p or "all" for p in _problems(board)]
    chosen = cut.problems[0] if cut.problems else ""
    return "".join(
        f"<option{' selected' if problem == chosen else ''}>{escape(text)}</option>"
        for problem, text in zip(_problems(board), told, strict=True)
    )


def _problems(board: Board) -> list[str]:
    """What can be chosen; "" is all."""
    named = dict.fromkeys([*(a.name for a in board.arenas), *(h.problem for h in board.honest)])
    return ["", *dict.fromkeys([*named, *(c.problem for c in board.cells)])]


def _paragraphs(lines: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines)


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


# -- the board, as page.js reads it ------------------------------------------------------------------------


def _data(board: Board, pictures: Sequence[str], shown: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    sentences, cuts = _advice_by_cut(board)
    most = max([2, *(len(c.scores) for c in board.cells), *(len(h.accuracy) for h in board.honest)])
    return {
        "everyone": EVERYONE,
        "statuses": STATUSES,
        "defenses": board.defenses,
        "problems": _problems(board),
        "arenas": [{n: getattr(a, n) for n in ("name", "measure", "chance")} for a in board.arenas],
        "useful": useful(board),
        "honest": [_honest(h) for h in board.honest],
        "cells": [_cell(board, c, shown.get(i)) for i, c in enumerate(board.cells)],
        "pictures": pictures,
        "sentences": sentences,
        "cuts": cuts,
        # Student's quantiles by degrees of freedom; of none there is none.
        "t": [0.0, *(t_quantile(n) for n in range(1, most))],
    }


def _honest(h: Honest) -> dict[str, Any]:
    names = ("problem", "defense", "status", "reason", "bytes_up", "bytes_down", "relative_seconds", "peak_bytes")
    found = {name: getattr(h, name) for name in (*names, "marks", "keys", "command")}
    found |= {"accuracy": _pairs(h.accuracy), "utility": _pairs(h.utility), "curve": _points(h.curve)}
    return {**found, "guarantees": list(h.guarantees.items())}


def _cell(board: Board, c: Cell, picture: tuple[int, int] | None) -> dict[str, Any]:
    names = ("problem", "defense", "attack", "axis", "goal", "party", "form", "knows", "threat", "status", "reason")
    more = ("reading", "found_by", "settings", "command", "counts", "marks")
    found = {name: getattr(c, name) for name in (*names, *more)}
    found |= {"statuses": _pairs(c.statuses), "scores": _pairs(c.scores), "keys": _pairs(c.keys)}
    found["mean"] = fmean(c.scores.values()) if c.scores else None
    found["metrics"] = [(n, [(s, _rounded(v)) for s, v in sorted(x.items())]) for n, x in c.metrics.items()]
    found |= {"beside": list(c.beside.items()), "versions": list(c.versions.items())}
    found |= {"curve": _points(c.curve), "series": [(n, _points(x)) for n, x in c.series.items() if x]}
    return {**found, "told": told(c, board), "picture": picture}


def told(c: Cell, board: Board) -> str:
    """What came of it, in a sentence; empty where nothing was measured."""
    metrics = {name: mean(list(values.values())) for name, values in c.metrics.items() if values}
    if c.axis == "integrity":
        if "accuracy" not in metrics:
            return ""
        measure = next((a.measure for a in board.arenas if a.name == c.problem), "accuracy")
        honest = [h.accuracy for h in board.honest if (h.problem, h.defense) == (c.problem, c.defense) and h.accuracy]
        before = f" (everybody honest: {level(mean(list(honest[0].values())), measure)})" if honest else ""
        success = metrics.get("attack_success_rate")
        trigger = f"; its trigger works on {percent(success)} of inputs" if success else ""
        return f"Under {c.attack} the model ends with {quality(metrics['accuracy'], measure)}{before}{trigger}."
    if c.goal not in GOAL_NAMES:
        return ""
    wording = goals.find(c.goal).text.wording(list(metrics))
    if wording.metric not in metrics:
        return ""
    begins = wording.undefended if c.defense == "fedavg" else wording.defended
    cell = SummaryCell(c.status, c.reason, c.reading, metrics, tuple(c.keys.values()))
    # In two steps, so that braces in a plug-in's name are not taken for places to fill.
    filled = re.sub(r"\{(attack|defense)\}", lambda found: str(getattr(c, found[1])), begins)
    return f"{filled} {wording.outcome(cell)}."


def _pairs(values: Mapping[int, Any] | BySeed) -> list[tuple[int, Any]]:
    return sorted(values.items())


def _points(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    return [(_rounded(x), _rounded(y)) for x, y in points]


def _rounded(x: float) -> float:
    """Four digits: what is drawn or shown, and not computed with, needs no more."""
    return float(f"{x:.4g}")


def _advice_by_cut(board: Board) -> tuple[list[str], dict[str, list[int]]]:
    """Every sentence once, and for every choice that the page offers which ones are said."""
    sentences: dict[str, int] = {}
    cuts: dict[str, list[int]] = {}
    names = _problems(board)
    # Of one problem, "all" is that one.
    same = len(names) == 2
    for who in _subsets(EVERYONE):
        for knows in _subsets(KNOWLEDGE):
            for i, problem in enumerate(names):
                if same and i:
                    continue
                cut = Cut(who, knows, (problem,) if problem else ())
                said = [sentences.setdefault(text, len(sentences)) for text in advice(board, cut)]
                for k in (0, 1) if same else (i,):
                    cuts[f"{','.join(who)}|{','.join(knows)}|{k}"] = said
    return list(sentences), cuts


def _subsets(names: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))


def _pictures(board: Board, folder: Path | None) -> tuple[list[str], dict[int, tuple[int, int]], int]:
    """Data URIs, each once; by cell (originals, guesses); of how many cells they are left out."""
    found: dict[str, int] = {}
    shown: dict[int, tuple[int, int]] = {}
    size = left_out = 0
    for i, c in enumerate(board.cells if folder is not None else ()):
        assert folder is not None
        both = next((x for s in sorted(c.keys) if (x := gallery.load(folder, c.keys[s])) is not None), None)
        if both is None or any(x.ndim != 4 or x.shape[1] not in (1, 3) or not len(x) for x in both):
            continue
        uris = [f"data:image/png;base64,{base64.b64encode(strip(x)).decode()}" for x in both]
        more = sum(len(uri) for uri in dict.fromkeys(uris) if uri not in found)
        if size + more > PICTURES:
            left_out += 1
            continue
        size += more
        before, after = (found.setdefault(uri, len(found)) for uri in uris)
        shown[i] = (before, after)
    return list(found), shown, left_out


def _only(board: Board, problems: Sequence[str]) -> Board:
    from fedarena.board.standing import within

    return within(board, Cut(problems=tuple(problems)))


def _asset(name: str) -> str:
    return files("fedarena.board").joinpath("page", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing from anywhere, and no script or style but the page's own."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    allowed = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'"
    return f"default-src 'none'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'"
