"""Prints a leaderboard as a web page.

The page holds the board as JSON and computes scores and ranks itself (ranking.js), so that a reader can choose threats.
A test compares them with `fedarena.board.ranking`. Without JavaScript it shows the ranking and the advice for the
threats that were chosen first. Foreign text (the name of a plug-in, the message of an exception) cannot run: it is
escaped here, the script makes text nodes of it, and the page's policy admits no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedarena.board.board import Board
from fedarena.board.leaderboard import Leaderboard, render
from fedarena.board.page.board_data import board_data, levels_of, problem_choices
from fedarena.board.page.heat_colours import heat_css
from fedarena.board.page.pictures import Pictures, load_pictures
from fedarena.board.page.ranking_table import heads, rows
from fedarena.board.threat_filter import ThreatFilter, threats_on, within
from fedarena.board.weights import AXES, Weights
from fedarena.core.text.numbers import plural
from fedarena.core.threat import EVERYONE

SCRIPTS = (
    *("data.js", "numbers.js", "ranking.js", "elements.js", "settings.js", "table.js", "picture.js", "heat_map.js"),
    *("chart.js", "defense.js", "cell.js", "start.js"),
)
"""The files of the page's script, each with one purpose; later ones use what earlier ones define."""

KNOWLEDGE_TEXT = {
    "none": "no data (none)",
    "own": "their own data (own)",
    "omniscient": "every honest upload (omniscient)",
}
"""What corrupted clients know, in the words of the page."""

BESIDE = {"references": "Without a federation", "nodes": "Without a server"}
"""The headings of `fedarena.board.leaderboard.Leaderboard.beside`."""


def page(
    board: Board,
    threats: ThreatFilter | None = None,
    folder: Path | None = None,
    commands: Sequence[str] = (),
    weights: Weights | None = None,
) -> str:
    """The page.

    Args:
        threats: what is chosen at first; of several problems the page can choose all or one.
        folder: the folder of the records, in which their pictures are.
        commands: the commands that make the page.
        weights: those of the ranking at first; None ranks by the lowest score.
    """
    threats = threats or threats_on(board)
    if len(threats.problems) > 1:
        board = within(board, ThreatFilter(problems=threats.problems))
        threats = ThreatFilter(threats.parties, threats.knows)
    pictures = load_pictures(board, folder)
    leaderboard = render(board, threats, weights)
    parts = {
        **_own_assets(),
        **_text(board, leaderboard, pictures),
        "parties": _boxes("party", {p: p for p in EVERYONE}, threats.parties),
        "knows": _boxes("knows", {k: KNOWLEDGE_TEXT[k] for k in levels_of(board)}, threats.knows),
        "problems": _problem_options(board, threats),
        **_weight_fields(weights),
        "heads": heads(board, threats, leaderboard.weighted),
        "rows": rows(board, threats, leaderboard),
        "rule": escape(leaderboard.rule),
        "all_ranked": "" if leaderboard.unranked else " hidden",
        "unranked": "".join(f'<p class="soft">{escape(line)}</p>' for line in leaderboard.unranked),
        "beside": _beside(leaderboard),
        "commands": "".join(f"<pre><code>{escape(c)}</code></pre>" for c in commands)
        + "<p>Each cell has its own, below its table of seeds.</p>",
        "data": inert(board_data(board, pictures, weights)),
    }
    # One pass, so that the contents of one part are never searched for the next one.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def inert(data: Any) -> str:
    """JSON that cannot end its script element, whatever its strings hold."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _own_assets() -> dict[str, str]:
    """Style and script of the page, and the policy that admits them alone."""
    style, script = _asset("page.css") + heat_css(), _script()
    return {"policy": escape(_policy(style, script)), "style": style, "script": script}


def _script() -> str:
    """All scripts as one, which shares nothing with other scripts of the browser."""
    return "\n".join(['"use strict";', "(() => {", *(_asset(name) for name in SCRIPTS), "})();"])


def _text(board: Board, leaderboard: Leaderboard, pictures: Pictures) -> dict[str, str]:
    """Everything above and below the ranking."""
    notes = [*leaderboard.notes]
    if pictures.left_out:
        cells = plural(pictures.left_out, "cell")
        notes.append(f"pictures of {cells} are left out, since the page would be too large")
    source = f"<p>Made from records of {escape(leaderboard.provenance)}.</p>" if leaderboard.provenance else ""
    about = f"{leaderboard.summary}. Seeds: {leaderboard.seeds}."
    return {
        "title": escape(leaderboard.title or "Leaderboard"),
        "lead": escape(_lead(board)),
        # All problems of the page, since the reader may choose another one.
        "about": f"<p>{escape(about)}</p>{_list([f'{p.name}: {p.description}' for p in board.problems])}",
        "advice": _paragraphs(leaderboard.advice),
        "notes": f'<section aria-labelledby="notes"><h2 id="notes">Notes</h2>{_list(notes)}</section>' if notes else "",
        "how": _paragraphs(leaderboard.how),
        "made": source,
    }


def _lead(board: Board) -> str:
    """What the page is, in one line."""
    attacks = len({c.attack for c in board.cells})
    return (
        f"{plural(len(board.defenses), 'defense')} of federated learning against {plural(attacks, 'attack')}. Utility "
        "is what a defense keeps of the gain of training together, integrity what poisoning leaves of it, and privacy "
        "what stays hidden of the clients' data."
    )


def _boxes(name: str, options: Mapping[str, str], chosen: Sequence[str]) -> str:
    return "".join(
        f'<label><input type="checkbox" name="{name}" value="{value}"{" checked" if value in chosen else ""}>'
        f"{escape(text)}</label>"
        for value, text in options.items()
    )


def _weight_fields(weights: Weights | None) -> dict[str, str]:
    """The choice between the lowest score and a weighted mean, and a number for each weight."""
    inputs = "".join(
        f'<label for="weight-{axis}">{axis}</label><input id="weight-{axis}" type="number" min="0" step="any" '
        f'value="{repr(1.0 if weights is None else weights.get(axis, 0.0)).removesuffix(".0")}">'
        for axis in AXES
    )
    return {"weights": inputs, "by_lowest": "" if weights else " checked", "by_weights": " checked" if weights else ""}


def _beside(leaderboard: Leaderboard) -> str:
    """The tables beside the ranking; hidden where that was not measured."""
    sections = []
    for name, (introduction, headings, lines) in leaderboard.beside.items():
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in headings)
        rows = []
        for first, *others in lines:
            cells = "".join(f"<td>{escape(text)}</td>" for text in others)
            rows.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
        sections.append(
            f'<section id="{name}" aria-labelledby="{name}-title"{"" if rows else " hidden"}>\n'
            f'<h2 id="{name}-title">{BESIDE[name]}</h2>\n<p class="soft">{escape(introduction)}</p>\n'
            f'<div class="scroll" role="region" aria-labelledby="{name}-title" tabindex="0">\n'
            f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>\n'
            "</div>\n</section>"
        )
    return "\n".join(sections)


def _problem_options(board: Board, threats: ThreatFilter) -> str:
    chosen = threats.problems[0] if threats.problems else ""
    return "".join(
        f"<option{' selected' if problem == chosen else ''}>{escape(problem or 'all')}</option>"
        for problem in problem_choices(board)
    )


def _paragraphs(lines: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines)


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _asset(name: str) -> str:
    return files("fedarena.board.page").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A content security policy: nothing from anywhere, and no script or style but the page's own."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    allowed = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'"
    return f"default-src 'none'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'"
