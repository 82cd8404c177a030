"""Card and options of `sign-dp`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.defenses.dp_sgd import card as dp_sgd


@dataclass(frozen=True)
class Options(dp_sgd.Options):
    """Options of sign DP: those of `dp-sgd`, and the length of a step."""

    scale: float = option(
        0.03, "γ: a round moves an entry by γ times the learning rate, so that rates of gradient steps serve", above=0
    )


CARD = Card(
    name="sign-dp",
    kind="defense",
    title="Sign DP: the majority's sign of private gradients",
    target="fedarena.defenses.sign_dp.protocol:SignDP",
    options=Options,
    paper="signSGD with Majority Vote is Communication Efficient and Fault Tolerant (ICLR)",
    authors="Bernstein, Zhao, Azizzadenesheli, Anandkumar",
    year=2019,
    url="https://arxiv.org/abs/1810.05291",
    equations="Algorithm 1 without momentum, on the uploads of DP-SGD (Abadi et al. 2016) in place of gradients",
    departures=(
        "It stands for the sign DP of Ma, Sun, Wu, Liu, Chen and Dong (TPDS 2022), of which the text was not at hand. "
        "All that is taken from there is what the two-stage paper says of it: gradients become signs with DP, and it "
        "withstands fewer than half of the clients. Mechanism, accounting and vote are choices made here.",
        "Gradients are bounded for each sample and get Gaussian noise before the sign is taken, so that the "
        "accounting is DP-SGD's. A sign tells less than its number: ε is an upper bound.",
        "The step is γ times the learning rate, since a sign is far longer than a gradient's entry.",
        "Entries in which the votes tie are left as they are.",
    ),
    check="no number of a paper; one step against a loop over votes: tests/defenses/sign_dp/test_protocol.py",
    facts=(
        ("down", "W"),
        ("up", "sign(g), g = (1/b)(Σ clipped gradients + N(0, σ²C²)); one bit an entry"),
        ("server knows", "W, every sign; each message is private by itself"),
        (
            "malicious server chooses",
            "the model at which clients work; signs and noise are the clients' own, and ε holds for any model",
        ),
        ("client knows", "W in its rounds, its own data and noise, the signs of the majority"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        ("privacy unit", "one sample of one client; rounds that a client sits out are not counted in its favour"),
    ),
    guarantees=dp_sgd.GUARANTEES,
    promises=dp_sgd.PROMISES,
)
