"""Classes, arrays and modules of a user's session as methods: each gets a card, and is known by the card's name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Poisoning
from fedarena.contracts.secure_sum import SecureSum
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UserError, describe, lacks_memory, type_of
from fedarena.core.given import Numbers, class_numbers, numbers
from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.models.architecture import Architecture, zeroed
from fedarena.runs.fingerprint import fingerprint

CLASSES: dict[str, dict[type, Kind]] = {
    "defense": {Defense: "defense", Aggregator: "aggregator", SecureSum: "secure"},
    "rule": {Aggregator: "aggregator"},
    "attack": {Inference: "attack", Poisoning: "attack"},
    "model": {Architecture: "model"},
}
"""Option → the classes that it takes, and the kind of method that a subclass is."""
HELD_OUT = 5
"""Of (inputs, classes) one sample in this many is held out, drawn with seed 0."""


def name_of(option: str, given: Any) -> str:
    """Make an object known, and return the name that it is known by from now on.

    Args:
        option: defense, rule, attack, dataset or model.
        given: a card; a class of a defense, a rule, a secure sum, an attack or an `Architecture`; a `Dataset` or
            (inputs, classes); an `nn.Module`, whose own values are not used, or a function of (input_shape, n_classes)
            that makes one.

    Raises:
        UserError: an object that is none of these, or a name that another method has.
    """
    try:
        card = given if isinstance(given, Card) else _card(option, given)
        source = getattr(card.target, "versioned_by", None) if isinstance(given, Card) else _source(card)
    except ValueError as error:  # a name that no method may have
        raise UserError(f"option '{option}' is {type_of(given)}: {error}") from None
    hold_with(card, source)
    return card.name


def hold_with(card: Card, source: Any) -> None:
    """Make a card known, whose version is the hash of a class or a function if one is given. Raises UserError."""
    registry.hold(card if source is None else replace(card, version=fingerprint(source)), source)


def renew_versions() -> None:
    """Give the methods of this session the hash of what they now are: a variable that they use may have changed."""
    for held in registry.held():
        if held.source is not None and fingerprint(held.source) != held.held.version:
            hold_with(held.held, held.source)


def _source(card: Card) -> Any:
    """The class that a card was made of; None for the harness's own class around a module or arrays."""
    return card.target if isinstance(card.target, type) and not issubclass(card.target, OwnModel) else None


def card_of_class(given: Any) -> Card:
    """The card of a class of one's own; `hold_with` gives it its version. Raises UserError for no method's class."""
    for bases in CLASSES.values():
        for base, kind in bases.items():
            if isinstance(given, type) and issubclass(given, base):
                name = registry.free_name(kind, _kebab(given.__name__))
                return Card(name=name, kind=kind, title=_title(given), target=given, options=_options(kind, given))
    raise UserError(f"a method is {type_of(given)}, allowed: a card, a class, a name, or a file with cards")


def _options(kind: Kind, given: type) -> type[Any]:
    """The options of the method that the class inherits from; none if it inherits from a contract alone."""
    methods = registry.registries()[kind]
    entries = [entry for name in methods.names() for entry in methods.claims(name) if not entry.foreign]
    of_class: dict[Any, type[Any]] = {(card := entry.card(kind)).target: card.options for entry in entries}
    for base in given.__mro__[1:]:
        for target in (base, f"{base.__module__}:{base.__qualname__}"):
            if target in of_class:
                return of_class[target]
    return NoOptions


def _card(option: str, given: Any) -> Card:
    if isinstance(given, type) and issubclass(given, tuple(CLASSES.get(option, {}))):
        return card_of_class(given)
    if option == "dataset" and (isinstance(given, Dataset) or (isinstance(given, tuple) and len(given) == 2)):
        made = given if isinstance(given, Dataset) else _dataset(*given)
        title, version = "Arrays of this session", fingerprint(vars(made))
        return Card(name=made.name, kind="dataset", title=title, target=lambda data_dir=None: made, version=version)
    if option == "model" and isinstance(given, nn.Module):
        return _model(type(given).__name__, lambda input_shape, n_classes: deepcopy(given), fingerprint(given))
    if option == "model" and callable(given) and not isinstance(given, type):
        return _model(getattr(given, "__name__", type(given).__name__).strip("<>"), _factory(given), fingerprint(given))
    raise UserError(f"option '{option}' is {type_of(given)}, allowed: a name, or {ALLOWED[option]}")


ALLOWED = {
    "defense": "a subclass of Defense, Aggregator or SecureSum",
    "rule": "a subclass of Aggregator",
    "attack": "a subclass of Inference or Poisoning",
    "dataset": "a fedarena.datasets.dataset.Dataset, or (inputs, classes)",
    "model": "an nn.Module, or a function of (input_shape, n_classes) that makes one",
}


class OwnModel(Architecture):
    """A module of this session, or a function that makes one.

    Attributes:
        name: that it is known by. make: (input_shape, n_classes) → the module.
    """

    name: ClassVar[str]
    make: ClassVar[Callable[[tuple[int, ...], int], nn.Module]]

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        try:
            return zeroed(lambda: type(self).make(input_shape, n_classes))
        except Exception as error:  # a user's function may fail in any way
            if isinstance(error, UserError) or lacks_memory(error):
                raise
            told = f"option 'model' is {self.name}, which fails: {describe(error)}"
            raise UserError(f"{told}, allowed: an nn.Module for ({input_shape}, {n_classes})") from error

    def __reduce__(self) -> tuple[Callable[[str, Any], Architecture], tuple[str, Any]]:
        """By its name: a function of a session need not be one that pickle can find."""
        return _known_model, (self.name, self.options)


def _known_model(name: str, options: Any) -> Architecture:
    made: Architecture = registry.find("model", name).load()(options)
    return made


def _model(called: str, make: Callable[[tuple[int, ...], int], nn.Module], version: int) -> Card:
    name = registry.free_name("model", _kebab(called))
    own = type("Own", (OwnModel,), {"name": name, "make": staticmethod(make)})
    return Card(name=name, kind="model", title="A module of this session", target=own, version=version)


def _factory(make: Callable[..., nn.Module]) -> Callable[[tuple[int, ...], int], nn.Module]:
    """The function, which takes two arguments. Raises UserError for one that does not."""
    try:
        taken = signature(make)
        taken.bind((1,), 2)
    except ValueError:  # a function that is not written in Python may not tell
        return make
    except TypeError:
        raise UserError(f"option 'model' is a function of {taken}, allowed: one of (input_shape, n_classes)") from None
    return make


def _dataset(x: Numbers, y: Numbers) -> Dataset:
    """Inputs [n, …] in [0, 1], or uint8 up to 255, and classes [n]. Raises UserError."""
    values, labels = numbers("dataset, inputs", x).cpu(), class_numbers("dataset, classes", y).cpu()
    if not values.numel() or labels.dim() != 1 or labels.shape != values.shape[:1]:
        shapes = f"{list(values.shape)} and {list(labels.shape)}"
        raise UserError(f"dataset: inputs and classes have the shapes {shapes}, allowed: [n, …] and [n]")
    if len(labels) < HELD_OUT:
        raise UserError(f"dataset: {len(labels)} samples, allowed: at least {HELD_OUT}, one of which is held out")
    if not 1 <= int(labels.max()) < len(labels):
        raise UserError(
            f"dataset, classes: up to {int(labels.max())}, allowed for {len(labels)} samples: 1 to {len(labels) - 1}, "
            "counted from 0"
        )
    whole = values.dtype == torch.uint8
    inputs, classes = (values if whole else values.float()).numpy(), labels.numpy()
    held = np.zeros(len(inputs), dtype=bool)
    held[np.random.default_rng(0).permutation(len(inputs))[: len(inputs) // HELD_OUT]] = True
    checksum = hashlib.sha256(np.ascontiguousarray(inputs).tobytes() + classes.tobytes()).hexdigest()
    return Dataset(
        name="arrays",
        x_train=inputs[~held],
        y_train=classes[~held],
        x_test=inputs[held],
        y_test=classes[held],
        scale=255.0 if whole else 1.0,
        n_classes=int(classes.max()) + 1,
        provenance=Provenance("arrays of this session", sha256=checksum),
    )


def _kebab(name: str) -> str:
    """MyRule → my-rule."""
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-")
    return words or "unnamed"  # it has no letter that a name may have


def _title(given: type) -> str:
    return (given.__doc__ or given.__name__).strip().splitlines()[0]
