"""What somebody may have meant who asked for a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


def did_you_mean(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """'; did you mean ...?' with the closest matches, or the whole list when nothing is close.

    Args:
        aliases: other names → the known ones; one that is asked for by the letter is the only match.
    """
    names = sorted(set(known))
    if aliases and name.lower() in aliases:
        return f"; did you mean {aliases[name.lower()]}?"
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; it knows: {', '.join(names)}" if names else "; it has none"
