"""Card of `bank-additional`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="bank-additional",
    title="Bank Marketing with economic indicators: does a customer subscribe a deposit, 48 columns",
    n_train=32950,
    n_test=8238,
    licence="CC BY 4.0 (UCI; Moro, Cortez, Rita)",
    files=(
        File(
            name="bank_additional.npz",
            shape=(48,),
            n_classes=2,
            sha256="bb2d4dbde036104bb005a4898d120f23f4733b19f85950b3cb259f16924a880d",
            source="UCI Bank Marketing (bank-additional-full.csv), complete, categories coded as numbers by "
            "sanjit-juneja/Keras-Bank-Marketing-Prediction (GitHub); new split, 80/20 within each class",
            stored=(20,),
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.bank_additional:bank_additional",
    paper="A data-driven approach to predict the success of bank telemarketing",
    authors="Moro, Cortez, Rita",
    year=2014,
    url="https://doi.org/10.24432/C5K306",
    departures=(
        "PBPFL (Feng et al. 2020) reports 41,188 rows of 17 dimensions, split 8:1:1. Its code reads 48 inputs from a "
        "file that its release does not hold. Of the 20 inputs of the data set, 17 without contact, month and poutcome "
        "give exactly 48 columns, which are those here.",
        "The split is 8:2: validation and test part of 8:1:1 together are the test part, since nothing is chosen on a "
        "validation part.",
        "`duration`, the length of the call, is known only after the call, when the answer is known too. It is kept, "
        "as 48 inputs need it.",
    ),
    facts=(
        *SPEC.facts(),
        (
            "columns",
            "age, duration, campaign, pdays, previous, emp.var.rate, cons.price.idx, cons.conf.idx, euribor3m, "
            "nr.employed; one-hot job (12), marital (4), education (8), default, housing, loan (3 each), day_of_week "
            "(5), each in the order of its codes",
        ),
        (
            "scaling",
            "each column is brought to [0, 1] by its minimum and maximum in the training part, test values are cut to "
            "it. The extremes are those of all clients together, which a federation would have to agree on.",
        ),
        ("balance", "11.3 % of the rows are of class 1"),
    ),
    usual=(("model", "mlp"),),
)
