"""Values that no sensible user would give, as text and as JSON, and what they do not belong to."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

NUMBERS = (
    *(
        "nan",
        "-nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "1e400",
        "-1e400",
        "1e308",
        "-1e308",
        "1e-320",
        "-0.0",
        "0",
        "-0",
    ),
    *("-1", "-2", "0.5", "-0.5", "1", "2", "3", "1.5", "2147483647", "2147483648", "-2147483649", "9007199254740991"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 60, "9" * 5000),
    *(
        "1e9",
        "1e5",
        "100000",
        "1000000",
        "0x10",
        "1_000",
        "１２",
        "١٢",
        "²",
        "½",
        "+1",
        " 1 ",
        "1 2",
        "1,2",
        "1,,2",
        "1e",
        "--1",
    ),
)
CONTROLS = ("\n", "a\nb", "\r", "\r\nbench: done", "\t", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\x85")
TEXTS = (
    *("", " "),
    *(
        "\u2028",
        "\u202e",
        "\ufeff",
        "é",
        "💥",
        "\udcff",
        "x" * 300,
        "x" * 70_000,
        ",",
        ",,",
        "a,b",
        "+",
        "a+b",
        "++",
        ":",
    ),
    *(
        "=",
        "a=b",
        ".=",
        "..",
        ".",
        "/",
        "../x",
        "../../../x",
        "/dev/null",
        "/dev/null/x",
        "/proc/self/mem",
        "~",
        "-",
        "--",
    ),
    *("'", '"', "`", "$(x)", "$x^{", r"\frac", "%s", "%", "{}", "{0}", "{x}", "[/]", "[bold]", "[/bold]", "[link=x]"),
    *(
        "<script>",
        "</script>",
        "<!--",
        "]]>",
        "&amp;",
        "|",
        "\\",
        "=1+1",
        "@x",
        "true",
        "none",
        "None",
        "null",
        "@file",
    ),
    *("flower:", "byzfl:", "byzfl:x", "flower:os.system", "byzfl:" + "x." * 50, "fedavg+", "+krum", "none+none"),
)
JSON = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.5, 1e308, -1e308, 5e-324, 2**31, 2**53, 2**63, 2**64, -(2**70), 10**30),
    *(
        [],
        {},
        [[]],
        [{}],
        [None],
        [1, 2],
        ["a"],
        {"a": 1},
        {"": None},
        [[1, 2]],
        [[0, 0.5], [1, 1]],
        {"0": 1},
        {"0": None},
    ),
)
"""Values of JSON of every type. `RAW` has what JSON cannot say, but files can."""
RAW = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "[" * 3000,
    '{"a":' * 3000,
    '"\\ud800"',
    '"\\u0000"',
    "tru",
    "",
)

numbers = st.sampled_from(NUMBERS)
letters = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


def texts(nul: bool = False) -> st.SearchStrategy[str]:
    """Texts; with NUL where a file can hold it. A command line cannot."""
    some = st.sampled_from((*TEXTS, "\0", "a\0b") if nul else TEXTS)
    return st.one_of(some, st.sampled_from(CONTROLS), numbers, letters)


values: st.SearchStrategy[Any] = st.one_of(st.sampled_from(JSON), texts(nul=True), st.integers(), st.floats())
"""Values of JSON, NaN and infinities too, which JSON must not have and Python's writer writes."""


def not_finite(text: str) -> bool:
    """Whether a text is a number, or has one in a list with commas, that is not finite."""
    return any(not math.isfinite(value) for value in _numbers(text))


def negative(text: str) -> bool:
    """Whether a text is a number, or has one in a list with commas, below 0."""
    return any(value < 0 for value in _numbers(text))


def _numbers(text: str) -> list[float]:
    found = []
    for word in text.split(","):
        try:
            found.append(float(word.rpartition("=")[2]))
        except ValueError:
            continue
    return found
