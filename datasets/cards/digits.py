"""Card of `digits`."""

from fedarena.core.card import Card

SHA256 = "ce5aacd0884ee31156f9a04eb6b0828059edc1b9f5f4962ca2023bf1174f18e5"
"""sha256 of x_train, y_train, x_test, y_test one after the other (C order, little-endian)."""

CARD = Card(
    name="digits",
    kind="dataset",
    title="Digits: handwritten digits, grey 8×8, embedded",
    target="fedarena.datasets.digits:load",
    paper="Optical Recognition of Handwritten Digits (UCI Machine Learning Repository)",
    authors="Alpaydin, Kaynak",
    year=1998,
    url="https://doi.org/10.24432/C50P49",
    departures=("scikit-learn ships only the repository's 1797 test images; they are split 80/20 within each class.",),
    facts=(
        ("images", "1438 for training, 359 for testing"),
        ("shape", "1×8×8"),
        ("classes", "10"),
        ("file", "embedded (scikit-learn)"),
        ("licence", "CC BY 4.0"),
        (
            "attributes",
            "bold: ink (the sum of the pixels) at or above the median of the image's own class in the training part; "
            "about half of every class",
        ),
    ),
)
