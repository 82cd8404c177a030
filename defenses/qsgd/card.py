"""Card and options of `qsgd`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of QSGD."""

    bits: int = option(4, "bits of an entry, its sign among them; s = 2^(bits − 1) − 1 levels above 0", low=2, high=16)
    bucket: int = option(512, "entries that share one length", low=1, high=2**31)


CARD = Card(
    name="qsgd",
    kind="defense",
    title="QSGD: uploads of few bits, rounded at random",
    target="fedarena.defenses.qsgd.protocol:QSGD",
    options=Options,
    paper="QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding (NeurIPS)",
    authors="Alistarh, Grubic, Li, Tomioka, Vojnović",
    year=2017,
    url="https://arxiv.org/abs/1610.02132",
    equations="Section 3.1 and its variant with buckets (Section 4)",
    departures=(
        "A level takes a fixed number of bits. Elias coding, which the paper adds, changes bytes and no number.",
        "Buckets run over the tensors one after another.",
    ),
    check="the variance bound of Lemma 3.1, and unbiasedness: tests/defenses/qsgd",
    facts=(
        ("down", "W"),
        ("up", "a length for each bucket, and a signed level for each entry of ∂L/∂W or of W − W_local"),
        ("server knows", "W, every upload; the rounding is unbiased, so that an upload is the gradient with noise"),
        ("malicious server chooses", "the model that each client gets"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        ("forms", "both forms match the upload's expectation, which is the gradient"),
    ),
)
