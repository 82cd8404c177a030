"""A stranger's tags, and orders to a terminal, are seen in the files that a command made."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.made_files import wrong_in_files

MARKUP = "a stranger's markup stands in "
PAGES = [
    ("a.html", "<p><odd>odd</odd></p>", f"{MARKUP}a.html"),
    ("a.html", '<p title="x" odd=\'1\' "></p>', f"{MARKUP}a.html"),
    ("a.html", '<script>{"a": "</script><odd>"}</script>', f"{MARKUP}a.html"),
    ("a.html", '<p title="x&quot; odd">&lt;odd&gt;</p><script>{"a": "\\u003codd"}</script>', ""),
    ("a.md", "a <odd>", f"{MARKUP}a.md"),
    ("a.md", "a \\<odd\\> `<odd>`\n\n```sh\n<odd>\n```\n", ""),
    ("a.md", "a \x1b[2J", "'\\x1b' stands in a.md"),
    ("a.xml", "<a><odd /></a>", f"{MARKUP}a.xml"),
    ("a.xml", '<a b="&lt;odd&gt;" />', ""),
    ("a.xml", "<a b='\x9b2J' />", "'\\x9b' stands in a.xml"),
]


@pytest.mark.parametrize(("name", "text", "told"), PAGES, ids=[f"{name} {i}" for i, (name, *_) in enumerate(PAGES)])
def test_a_strangers_markup_is_seen_in_made_files(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert wrong_in_files(tmp_path.iterdir()) == told


def test_xml_that_cannot_be_read_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a>")
    assert wrong_in_files(tmp_path.iterdir()).startswith("no XML")
