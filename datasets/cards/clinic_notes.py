"""Card of `clinic-notes`."""

from fedarena.core.card import Card

SHA256 = "cb781e70862879c8e7efbdaa0d427f90df161c30b7e677361552446dc8800009"
"""sha256 of x_train, y_train, x_test, y_test one after the other (C order, little-endian)."""

CARD = Card(
    name="clinic-notes",
    kind="dataset",
    title="Clinic notes: made-up texts with names, ages and complaints, embedded",
    target="fedarena.datasets.clinic_notes:load",
    departures=(
        "Not from a paper: texts in which privacy means something, whose words fit a small transformer's width.",
        "All words are drawn uniformly and by themselves, so that a language model would help an attacker little.",
    ),
    facts=(
        ("texts", "1920 for training, 480 for testing"),
        ("shape", "7×165: one-hot codes of at most 7 words and padding"),
        ("classes", "6: the department that treats the complaint"),
        ("words", "164 and padding: 24 first names, 24 last names, 72 ages, 7 days, complaints, since, has"),
        ("file", "embedded (made by a fixed seed)"),
    ),
    usual=(("model", "transformer"), ("lr", "0.1")),
)
