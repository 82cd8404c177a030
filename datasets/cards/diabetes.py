"""Card of `diabetes`."""

from fedarena.core.card import Card

SHA256 = "1bac4b891682e0c403589b74aee54b4f10e9edf78fa6b19e9ccdd4aadffdada5"
"""sha256 of x_train, y_train, x_test, y_test one after the other (C order, little-endian)."""

UNIT = 346.0
"""What y = 1 means in the measure of the source: its largest value."""

CARD = Card(
    name="diabetes",
    kind="dataset",
    title="Diabetes: its course within a year, a regression on 10 columns, embedded",
    target="fedarena.datasets.embedded_tables:diabetes",
    paper="Least Angle Regression (Annals of Statistics)",
    authors="Efron, Hastie, Johnstone, Tibshirani",
    year=2004,
    url="https://doi.org/10.1214/009053604000000067",
    departures=(
        "No official split: the 442 rows are split 80/20.",
        "The columns are taken as they were measured, not as scikit-learn scales them by default, and scaled here.",
    ),
    facts=(
        ("rows", "354 for training, 88 for testing"),
        ("shape", "10"),
        ("classes", "none: y is a number"),
        (
            "y",
            f"progression of the disease a year after the start, from 25 to 346, divided by {UNIT:g}: an error of "
            f"{1 / UNIT:.5f} is one point, a squared error of 1 is {UNIT:g}² square points",
        ),
        ("columns", "age, sex, body mass index, blood pressure and six measures of blood serum"),
        (
            "scaling",
            "each column is brought to [0, 1] by its minimum and maximum in the training part, test values are cut to "
            "it",
        ),
        ("file", "embedded (scikit-learn)"),
        ("licence", "none stated; published with the paper"),
    ),
    usual=(("model", "mlp"), ("loss", "regression"), ("partition", "iid")),
)
