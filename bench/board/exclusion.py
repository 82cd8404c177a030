"""Cells that were to count and do not, each with its reason.

An inference cell is *silent* if the defense gives a party nothing to read of messages that leak, and *misleading* if it
gives something that does not follow from them (`fedarena.goals.control`). It is *unexplained* if clients add something
that nothing accounts for, and *empty* if messages depend on no sample (`fedarena.goals.message_checks`). It is
*uninformative* if the model that is attacked is hardly better than a constant answer: what is read from it, or is not,
says nothing about a model that learns. A poisoning cell counts only if its attack was tuned, where it can be: a score
against an attack that took its strength as given says how that default fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fedarena.board.board import BySeed
from fedarena.core.text.numbers import Mean, mean, share
from fedarena.goals.metrics.gain import learned_nothing
from fedarena.records.schema import Record

OF_MESSAGE: Mapping[str, str] = {"a part": "unexplained", "nothing of samples": "empty"}
"""What a record says of a message → what its cell is called."""


def uninformative(accuracy: BySeed, chance: float) -> str:
    """Why an inference attack on a clean run tells nothing; empty where it does.

    Args:
        accuracy: the clean run's, by seed.
        chance: what a constant answer reaches.
    """
    seeds = learned_nothing(list(accuracy.values()), chance)
    if not seeds:
        return ""
    where = f" on {seeds} of {len(accuracy)} seeds" if 2 * seeds >= len(accuracy) > seeds else ""
    reached = share(mean(list(accuracy.values())))
    return (
        f"uninformative: the model that is attacked is hardly better than a constant answer{where} (it reaches "
        f"{reached}, the answer {share(Mean(chance, None, 1))})"
    )


def untuned(records: Mapping[int, Record]) -> str:
    """Why a poisoning cell does not count; empty where its attack was tuned or has nothing to tune."""
    names = dict.fromkeys(name for record in records.values() for name in record["attacked"].get("untuned", []))
    return f"untuned: the attack took its {' and '.join(names)} as given (tune=N lets it choose)" if names else ""


def silent(records: Iterable[Record]) -> str:
    """Why an inference cell does not count against a defense that does not say what its messages tell; empty where it
    does.

    Args:
        records: the records of the cell, in all readings. One that leaks is enough.
    """
    control = next((record["control"] for record in records if "control" in record), None)
    if control is None:
        return ""
    if (of_message := OF_MESSAGE.get(control["said"])) is not None:
        return f"{of_message}: {control['outcome']}"
    how = "silent" if control["said"] == "nothing" else "misleading"
    return f"{how}: a control reading of the same messages {control['outcome']}"
