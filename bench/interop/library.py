"""What all libraries have in common: where they are installed, and how their classes become methods."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any, ClassVar

from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.errors import UserError


def release(distribution: str, extra: str, name: str) -> str:
    """The installed release of a distribution. Raises UserError where the method `name` lacks it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        raise UserError(
            f"{name} needs the package {distribution}, which is not installed: pip install 'fedarena[{extra}]'"
        ) from None


def release_number(text: str) -> int:
    """A release as a card's version, which is part of every record's key: 1.42.3 is 1042003."""
    numbers = [int("".join(filter(str.isdigit, part)) or 0) for part in [*text.split("."), "0", "0"][:3]]
    return max(1, numbers[0] * 10**6 + numbers[1] * 10**3 + numbers[2])


def origin_of(module: str) -> str:
    """The distribution that holds a module, with its release; or the module, where no distribution holds it."""
    top = module.partition(".")[0]
    found = packages_distributions().get(top)
    return f"{found[0]} {version(found[0])}" if found else f"the module {top}"


class FromLibrary:
    """A method around a class of another library. It is pickled by name, since its class is made when asked for.

    Attributes:
        kind, name: of the method.
        source: the library's class.
    """

    kind: ClassVar[Kind]
    name: ClassVar[str]
    source: ClassVar[type[Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _blank, (self.kind, self.name), self.__dict__


def _blank(kind: Kind, name: str) -> Any:
    method = registry.find(kind, name).load()
    return method.__new__(method)
