"""A comparison as JUnit XML, which CI servers read: a test case for each cell, clean run and mean."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from fedarena.board.gate.comparison import Comparison, Item
from fedarena.board.gate.wording import NUMBERS, numbers, verdict

SUITES = {"board": "board", "honest": "clean runs", "cell": "cells", "mean": "means over cells"}


def junit(c: Comparison) -> str:
    """One test suite for each group; a finding is a failure, an item without a score on either board is skipped.

    The elements and attributes that Jenkins, GitLab and GitHub's readers have in common: testsuites, testsuite
    (name, tests, failures, errors, skipped, time), testcase (classname, name, time), failure (message, type), skipped,
    system-out. Times are 0: nothing was measured here.
    """
    top = ElementTree.Element("testsuites", {"name": f"bench compare: {_clean(verdict(c))}"})
    for group, title in SUITES.items():
        items = [item for item in c.items if item.group == group]
        if not items:
            continue
        suite = ElementTree.SubElement(top, "testsuite", {"name": title, "errors": "0", "time": "0"})
        for item in items:
            _case(suite, title, item)
        _count(suite)
    if not len(top):
        _count(ElementTree.SubElement(top, "testsuite", {"name": "board", "errors": "0", "time": "0"}))
    for name in ("tests", "failures", "skipped", "errors"):
        top.set(name, str(sum(int(suite.get(name, "0")) for suite in top)))
    top.set("time", "0")
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, title: str, item: Item) -> None:
    names = {"classname": f"bench.compare.{title}", "name": _clean(item.name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    table = ", ".join(f"{name} {value}" for name, value in zip(NUMBERS, numbers(item), strict=True) if value != "-")
    if item.findings:
        message = _clean("; ".join([*item.findings, *([table] if item.verdict and item.verdict.finding else [])]))
        failure = ElementTree.SubElement(case, "failure", {"message": message, "type": "finding"})
        failure.text = _clean("\n".join(text for text in (*item.findings, table, item.command) if text))
    elif item.verdict is None:
        ElementTree.SubElement(case, "skipped", {"message": _clean(item.reason)})
    else:
        lines = [f"{item.verdict.outcome}: {table}", *(change.words for change in item.changes)]
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(lines))


def _count(suite: ElementTree.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold, or that a terminal obeys."""
    return re.sub("[^\t\n\r\u0020-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text)
