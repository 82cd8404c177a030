"""What `bench run` prints of attacks that tell members, read labels or take the model."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fedarena.cli.pairing_output import number
from fedarena.membership import RATES
from fedarena.percent import percent
from fedarena.records import Record
from fedarena.summary import Cell
from fedarena.wording import auc

SECRET = "secret_error_"


def lines(cell: Cell) -> list[str]:
    """A cell of the table; nothing for reconstructions."""
    if "auc" in cell.metrics:
        told = [auc(cell), f"advantage {number(cell.metrics['advantage'])}"]
        for name, rate in RATES.items():
            if name in cell.metrics:
                told.append(f"finds {percent(cell.metrics[name])} at {100 * rate:g} % FPR")
        return told
    if "prior_label_accuracy" in cell.metrics and "label_accuracy" in cell.metrics:
        return [f"labels {percent(cell.metrics['label_accuracy'])}"]
    if "prior_agreement" in cell.metrics:
        return _model(cell)
    return []


def _model(cell: Cell) -> list[str]:
    m = cell.metrics
    told = [f"agreement {percent(m['agreement'])}", f"in the last round {percent(m['final_agreement'])}"]
    if "stolen_accuracy" in m:
        told.append(f"by true labels {number(m['stolen_accuracy'])} of {number(m['server_accuracy'])}")
    for name, title in (("output_error", "outputs: error"), ("parameter_cosine", "parameters: cosine")):
        if name in m:
            told.append(f"{title} {number(m[name])}")
    return told + [f"secret {n.removeprefix(SECRET)}: error {m[n].value:.2g}" for n in m if n.startswith(SECRET)]


def baseline(records: Sequence[Record]) -> str:
    """What guessing reaches, and on how many questions; empty for reconstructions."""

    def values(name: str) -> list[float]:
        return [r["metrics"][name] for r in records if name in r["metrics"]]

    if asked := values("candidates"):
        return f"Without any attack: AUC 0.5. Candidates: {_span(asked)} a cell and seed, half of them members."
    if asked := values("labels"):
        prior = 100 * fmean(values("prior_label_accuracy"))
        return (
            f"Without any attack: guessing by the classes' frequencies names {prior:.0f} % of the labels. "
            f"Labels: {_span(asked)} a cell and seed."
        )
    if looked := values("models"):
        constant = _span([100 * value for value in values("prior_agreement")])
        return (
            f"Without any attack: the best constant prediction agrees by {constant} % with the server's model. "
            f"Rounds looked at: {_span(looked)} a cell and seed."
        )
    return ""


def _span(numbers: Sequence[float]) -> str:
    low, high = f"{min(numbers):,.0f}", f"{max(numbers):,.0f}"
    return low if low == high else f"{low} to {high}"
