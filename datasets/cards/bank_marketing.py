"""Card of `bank-marketing`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="bank-marketing",
    title="Bank Marketing: does a customer subscribe a deposit, 51 columns",
    n_train=36169,
    n_test=9042,
    licence="CC BY 4.0 (UCI; Moro, Cortez, Rita)",
    files=(
        File(
            name="bank_marketing.npz",
            shape=(51,),
            n_classes=2,
            sha256="6a61d6f6f3c383d30852082e826009e632a6698fcee686609ebb7046904e0780",
            source="UCI Bank Marketing (bank-full.csv), complete, split 80/20 within each class",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:bank_marketing",
    paper="A data-driven approach to predict the success of bank telemarketing",
    authors="Moro, Cortez, Rita",
    year=2014,
    url="https://doi.org/10.24432/C5K306",
    departures=(
        "PBPFL (Feng et al. 2020) reports 41,188 rows of 17 columns, split 8:1:1, and its code reads 48 inputs. These "
        "are rows of bank-additional-full.csv, the data set `bank-additional`. This is bank-full.csv, with 45,211 rows "
        "and 16 columns, which become 7 numbers and 44 one-hot columns, split 80/20 within each class.",
        "`duration`, the length of the call, is known only after the call, when the answer is known too. It is kept: "
        "this is a benchmark of protocols, no forecast.",
    ),
    facts=(
        *SPEC.facts(),
        (
            "columns",
            "age, balance, day, duration, campaign, pdays, previous; one-hot job (12), marital (3), education (4), "
            "default, housing, loan (2 each), contact (3), month (12), poutcome (4)",
        ),
        (
            "scaling",
            "each column is brought to [0, 1] by its minimum and maximum in the training part, test values are cut to "
            "it. The extremes are those of all clients together, which a federation would have to agree on.",
        ),
        ("balance", "11.7 % of the rows are of class 1"),
    ),
    usual=(("model", "mlp"),),
)
