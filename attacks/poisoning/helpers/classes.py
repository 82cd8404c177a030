"""A check that the labels are classes, for attacks that need them."""

from __future__ import annotations

from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.errors import UserError


def require_classes(knowledge: AttackerKnowledge, attack: str, what: str = "") -> None:
    """Refuse data whose labels are numbers, for an attack that replaces one class by another.

    Args:
        what: the option's value that needs classes, as "option 'strike' is labels"; empty if all values do.

    Raises:
        UserError: labels are numbers. The error names the attack and the kind of data.
    """
    if not knowledge.task.n_classes:
        said = f"{what}, but " if what else ""
        raise UserError(f"attack {attack}: {said}the data set's labels are numbers, allowed: a data set with classes")


def require_class(knowledge: AttackerKnowledge, attack: str, option: str, value: int) -> None:
    """Raise UserError for an option whose value is none of the classes."""
    classes = knowledge.task.n_classes
    if value >= classes:
        raise UserError(
            f"attack {attack}: option '{option}' is {value}, allowed: 0 to {classes - 1} with {classes} classes"
        )
