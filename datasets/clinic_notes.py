"""Made-up notes of a clinic's front desk, so that a first run on text needs no download.

A note names a person, an age, a complaint and a day, such as "maria lopez 47 chest pain since monday". Its class is the
department that treats the complaint. All words are drawn uniformly by a fixed seed: no note is of a real person. A
sample is the one-hot code of a note's words, [LENGTH, words]; behind the last word it is that of padding, WORDS[0].
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from fedarena.core.rng import Rng
from fedarena.datasets.cards.clinic_notes import SHA256
from fedarena.datasets.dataset import SPLIT_SEED, Dataset, Provenance, checksum, stratified
from fedarena.datasets.npz import Array

NOTES = 2400
LENGTH = 7

FIRST = (
    *("maria", "james", "aisha", "peter", "elena", "david", "fatima", "oscar", "julia", "henry", "sofia", "victor"),
    *("clara", "ahmed", "nora", "bruno", "ingrid", "samuel", "priya", "leon", "hanna", "marco", "alice", "tomas"),
)
LAST = (
    *("lopez", "smith", "khan", "mueller", "rossi", "novak", "jensen", "silva", "dubois", "kim", "okafor", "murphy"),
    *("tanaka", "petrov", "garcia", "hansen", "weber", "costa", "singh", "keller"),
    *("moreau", "larsen", "vogel", "reyes"),
)
AGES = tuple(str(age) for age in range(18, 90))
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COMPLAINTS = {
    "cardiology": (("chest", "pain"), ("fast", "pulse"), ("swollen", "ankles"), ("palpitations",)),
    "neurology": (("severe", "headache"), ("numb", "arm"), ("blurred", "vision"), ("seizure",)),
    "orthopedics": (("knee", "pain"), ("swollen", "wrist"), ("broken", "arm"), ("backache",)),
    "dermatology": (("itchy", "rash"), ("dark", "mole"), ("severe", "acne"), ("eczema",)),
    "gastroenterology": (("stomach", "pain"), ("severe", "nausea"), ("bloody", "stool"), ("heartburn",)),
    "psychiatry": (("panic", "attacks"), ("severe", "insomnia"), ("low", "mood"), ("hallucinations",)),
}
"""The complaints that each department treats; a department's place is its class."""

_OF_COMPLAINTS = tuple(dict.fromkeys(w for group in COMPLAINTS.values() for complaint in group for w in complaint))
WORDS = ("", "since", "has", *FIRST, *LAST, *AGES, *DAYS, *_OF_COMPLAINTS)
"""The alphabet; a word's place is its code."""


def load(data_dir: Path | None = None) -> Dataset:
    """The notes, split 80/20 within each class by a fixed seed; `data_dir` plays no part."""
    x, y = _notes()
    train, test = stratified(y, Rng(SPLIT_SEED).child("clinic-notes", "split").numpy())
    sha256 = checksum((x[train], y[train], x[test], y[test]))
    return Dataset(
        name="clinic-notes",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        scale=1.0,
        n_classes=len(COMPLAINTS),
        provenance=Provenance(source="made up by this package", sha256=sha256, verified=sha256 == SHA256),
        words=WORDS,
    )


@cache
def _notes() -> tuple[Array, Array]:
    """All different notes as one-hot codes [N, LENGTH, words] (uint8), and their classes."""
    draw = Rng(0).child("clinic-notes").numpy()
    texts: dict[tuple[str, ...], int] = {}
    while len(texts) < NOTES:
        label = len(texts) % len(COMPLAINTS)
        texts.setdefault(note(label, draw), label)
    codes = np.array([[WORDS.index(w) for w in text + ("",) * (LENGTH - len(text))] for text in texts])
    return np.eye(len(WORDS), dtype=np.uint8)[codes], np.array(list(texts.values()), dtype=np.int64)


def note(label: int, draw: np.random.Generator) -> tuple[str, ...]:
    """The words of one note, in one of three orders."""

    def one(of: tuple[str, ...]) -> str:
        return of[draw.integers(len(of))]

    complaints = tuple(COMPLAINTS.values())[label]
    complaint, day = complaints[draw.integers(len(complaints))], one(DAYS)
    person = (one(FIRST), one(LAST), one(AGES))
    orders = (
        (*person, *complaint, "since", day),
        (*complaint, "since", day, *person),
        (day, *person, "has", *complaint),
    )
    return orders[draw.integers(len(orders))]
