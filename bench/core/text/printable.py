"""Text of strangers, such as the strings of a published board, without characters that a terminal obeys."""

from __future__ import annotations

REPLACED = {
    **{code: 0x2400 + code for code in range(0x20)},  # the pictures of control characters: ESC becomes ␛
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),  # 0x9B alone begins an escape sequence, too
}
LINE_BREAKS = {ord(c): c for c in "\n\t"}


def printable(text: str) -> str:
    """The text with pictures in place of control characters; line breaks and tabs remain."""
    return text.translate({**REPLACED, **LINE_BREAKS})


def one_line(text: str) -> str:
    """The text with pictures in place of all control characters, line breaks too."""
    return text.translate(REPLACED)
