"""Suggestions for names that are not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


def did_you_mean(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """Return '; did you mean ...?' with the closest matches, or the whole list if nothing is close.

    Args:
        aliases: other names → the known ones. An alias that matches exactly is the only suggestion.
    """
    names = sorted(set(known))
    if aliases and name.lower() in aliases:
        return f"; did you mean {aliases[name.lower()]}?"
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; it knows: {', '.join(names)}" if names else "; it has none"
