"""What must not stand in the files that a command made of somebody else's: his tags, and orders to a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from fuzz.judge import CONTROL

ODD = "odd"
"""The name of the tags and attributes in `MARKUPS`, which no page of bench has."""
MARKUPS = ("</script><odd>", "<odd>odd</odd>", "x\" odd='1' ", '\' odd="1" ')
"""Texts that become a tag or an attribute where a page has them as they are."""
CODE = re.compile(r"(`{3,})sh\n.*?\n\1(?=\n)|(?<!\\)`[^`\n]*`", re.DOTALL)
"""Code in markdown, in which a tag is none."""
TAG = re.compile(rf"(?<!\\)</?(?:{ODD}|script)")


class _Tags(HTMLParser):
    """The names of all tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


def wrong_in_files(paths: Iterator[Path]) -> str:
    """What is wrong with the files that a command made; empty where nothing is."""
    for path in sorted(paths):
        read = {".html": _in_page, ".md": _in_markdown, ".xml": _in_xml}.get(path.suffix)
        text = path.read_text(encoding="utf-8") if read is not None and path.is_file() else ""
        if read is not None and (why := read(text)):
            return f"{why} in {path.name}"
        if path.suffix != ".html" and (found := CONTROL.search(text)):
            return f"{found[0]!r} stands in {path.name}"
    return ""


def _in_page(text: str) -> str:
    tags = _Tags()
    tags.feed(text)
    return "a stranger's markup stands" if ODD in tags.names else ""


def _in_markdown(text: str) -> str:
    return "a stranger's markup stands" if TAG.search(CODE.sub("", text)) else ""


def _in_xml(text: str) -> str:
    try:
        names = {name for element in ElementTree.fromstring(text).iter() for name in (element.tag, *element.attrib)}
    except ElementTree.ParseError as error:
        return f"no XML ({error})"
    return "a stranger's markup stands" if ODD in names else ""
