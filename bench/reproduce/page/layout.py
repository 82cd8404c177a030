"""The files of the page: a short front page, a page for each paper or group of its tables, and what is on none."""

from __future__ import annotations

from collections.abc import Mapping

FRONT, LEFT = "README.md", "left-out.md"
EXTERNAL = "external"
"""In a paper's place: the tables of papers and libraries whose protocols are none of these defenses."""

GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "two-stage": {
        "tables": ("table2", "table3", "sign-rules", "table4", "table5", "table15", "table16", "table17"),
        "gamma": ("table6", "tables10-14"),
        "figures": ("figure1", "figure2"),
        "claims": ("claim1", "claim6"),
        "logs": ("logs-alone", "logs-rates", "logs-shares", "logs-ttbb"),
    }
}
"""Paper → group → tables, for papers that take more than a page."""


def paper_of(table: str) -> str:
    """The paper of a table."""
    return table.partition("/")[0]


def page_of(table: str) -> str:
    """The file that a table stands in."""
    paper, _, own = table.partition("/")
    group = next((name for name, tables in GROUPS.get(paper, {}).items() if own in tables), "")
    return f"{paper}-{group}.md" if group else f"{paper}.md"
