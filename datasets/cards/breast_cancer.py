"""Card of `breast-cancer`."""

from fedarena.core.card import Card

SHA256 = "ffd52ff63161991574e6ea2d8c33a659e4fdf8ba9d87c462021470e38e8d6718"
"""sha256 of x_train, y_train, x_test, y_test one after the other (C order, little-endian)."""

CARD = Card(
    name="breast-cancer",
    kind="dataset",
    title="Breast cancer (Wisconsin): malignant or benign, 30 columns, embedded",
    target="fedarena.datasets.embedded_tables:breast_cancer",
    paper="Nuclear feature extraction for breast tumor diagnosis",
    authors="Street, Wolberg, Mangasarian",
    year=1993,
    url="https://doi.org/10.24432/C5DW2B",
    departures=("No official split: the 569 rows are split 80/20 within each class.",),
    facts=(
        ("rows", "456 for training, 113 for testing"),
        ("shape", "30"),
        ("classes", "2: 0 malignant (212 rows), 1 benign (357)"),
        ("columns", "mean, standard error and largest value of ten measures of the nuclei of cells"),
        (
            "scaling",
            "each column is brought to [0, 1] by its minimum and maximum in the training part, test values are cut to "
            "it",
        ),
        ("file", "embedded (scikit-learn)"),
        ("licence", "CC BY 4.0"),
    ),
    usual=(("model", "mlp"),),
)
