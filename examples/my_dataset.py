"""A data set: the wines of scikit-learn, a table of 13 columns in [0, 1]."""

from sklearn import datasets, model_selection, preprocessing

from fedarena.core.card import Card
from fedarena.datasets.dataset import Dataset, Provenance


def load(data_dir=None):
    x, y = datasets.load_wine(return_X_y=True)
    x = preprocessing.minmax_scale(x).astype("float32")
    x_train, x_test, y_train, y_test = model_selection.train_test_split(x, y.astype("int64"), random_state=0)
    arrays = {"x_train": x_train, "x_test": x_test, "y_train": y_train, "y_test": y_test}
    return Dataset(name="wines", **arrays, scale=1.0, n_classes=3, provenance=Provenance("scikit-learn"))


CARD = Card(name="wines", kind="dataset", title="Three sorts of wine", target=load)
