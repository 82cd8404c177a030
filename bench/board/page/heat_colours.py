"""The colours of scores on the web page."""

from __future__ import annotations

STOPS = ((0, 34, 78), (67, 78, 108), (125, 124, 120), (188, 175, 111), (254, 232, 56))
"""Colours of 0, ¼, … 1: lightness grows all the way, and the colour-blind can distinguish blue from yellow."""

LEVELS = 10

Colour = tuple[int, int, int]

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def heat_class(score: float) -> str:
    """The class of a score: h0 … h10."""
    return f"h{int(LEVELS * min(1.0, max(0.0, score)) + 0.5)}"


def heat_css() -> str:
    """The classes h0 … h10: the colour of a score in tenths, with black or white text, whichever has more contrast."""
    rules = []
    for i in range(LEVELS + 1):
        shade = _shade(i / LEVELS)
        text = "#000000" if contrast(shade, BLACK) > contrast(shade, WHITE) else "#ffffff"
        rules.append(f".h{i}{{background:{_hex(shade)} !important;color:{text} !important}}")
    return "".join(rules)


def contrast(one: Colour, other: Colour) -> float:
    """(L₁ + 0.05) / (L₂ + 0.05) with relative luminance L, the lighter first (WCAG 2.2)."""

    def luminance(colour: Colour) -> float:
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _shade(x: float) -> Colour:
    """The colour of a score, mixed of the two stops beside it."""
    place = x * (len(STOPS) - 1)
    i = min(int(place), len(STOPS) - 2)
    mixed = [round(a + (b - a) * (place - i)) for a, b in zip(STOPS[i], STOPS[i + 1], strict=True)]
    return mixed[0], mixed[1], mixed[2]


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{c:02x}" for c in colour)
