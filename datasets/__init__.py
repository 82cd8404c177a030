"""Data sets. A name's card is light; its arrays are read on use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.datasets.dataset import Dataset

CARDS: dict[str, str] = {
    "bank-additional": "fedarena.datasets.cards.bank_additional:CARD",
    "bank-marketing": "fedarena.datasets.cards.bank_marketing:CARD",
    "breast-cancer": "fedarena.datasets.cards.breast_cancer:CARD",
    "cifar10": "fedarena.datasets.cards.cifar10:CARD",
    "cifar100": "fedarena.datasets.cards.cifar100:CARD",
    "clinic-notes": "fedarena.datasets.cards.clinic_notes:CARD",
    "diabetes": "fedarena.datasets.cards.diabetes:CARD",
    "digit-domains": "fedarena.datasets.cards.digit_domains:CARD",
    "digits": "fedarena.datasets.cards.digits:CARD",
    "fashion-mnist": "fedarena.datasets.cards.fashion_mnist:CARD",
    "ham10000": "fedarena.datasets.cards.ham10000:CARD",
    "kmnist": "fedarena.datasets.cards.kmnist:CARD",
    "lfw": "fedarena.datasets.cards.lfw:CARD",
    "mnist": "fedarena.datasets.cards.mnist:CARD",
    "olivetti": "fedarena.datasets.cards.olivetti:CARD",
    "usps": "fedarena.datasets.cards.usps:CARD",
    "utkface": "fedarena.datasets.cards.utkface:CARD",
}


def load(name: str, data_dir: Path | None = None) -> Dataset:
    """A registered data set, third-party ones included.

    Args:
        name: registry name, such as "mnist".
        data_dir: folder that is searched first; see `fedarena.datasets.folders`.

    Raises:
        UserError: an unknown name, a file that is absent or damaged, or a loader that returns something else.
    """
    from fedarena.core import registry
    from fedarena.datasets.dataset import load_from

    return load_from(registry.find("dataset", name).load(), data_dir)
