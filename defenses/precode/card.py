"""Card of `precode`."""

from fedarena.core.card import Card

CARD = Card(
    name="precode",
    kind="defense",
    title="PRECODE: a variational bottleneck in the model, whose noise makes gradients random",
    target="fedarena.defenses.precode.protocol:Precode",
    paper="PRECODE - A Generic Model Extension to Prevent Deep Gradient Leakage (WACV)",
    authors="Scheliga, Mäder, Seeland",
    year=2022,
    url="https://arxiv.org/abs/2108.04725",
    equations="Section 4, the variational bottleneck before the output layer, k = 256 and β = 1e-3",
    departures=(
        "The bottleneck is an option of the models `mlp` and `cnn` (`model.bottleneck`, `model.beta`); here are the "
        "readings of what their clients send.",
        "Evaluation takes the code's mean. The released code draws noise there, too.",
        "σ is the softplus of the encoder's outputs and the divergence is in bits, as in the released code; the paper "
        "does not say.",
        "In paper form an attack passes its candidates without noise. The paper's attack draws it anew in each step, "
        "which is a harder search.",
        "The adaptive form of a single gradient of one sample reads the noise off the decoder's gradient. PPP "
        "(Scheliga et al. 2022) leaves the stochastic layers out, which the other reading does.",
    ),
    check="no number of a paper; the code that is read off, and both forms by hand: tests/defenses/precode",
    facts=(
        ("needs", "a model with a bottleneck: --model mlp or cnn with --set model.bottleneck=256"),
        ("down", "W, with encoder and decoder"),
        ("up", "the gradient of loss + β·KL by W, or W − W_local, at noise ε that the client draws for each sample"),
        ("promise", "none: the noise enters behind the layers that see the sample, whose gradients name it"),
        (
            "server knows",
            "W, every upload; of one sample also ε, since decoder.weight has the gradient δ·codeᵀ and decoder.bias δ",
        ),
        (
            "malicious server chooses",
            "the model that each client gets, and so how large σ is: encoder biases that are very negative turn the "
            "noise off",
        ),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "no defense",
            "the column beside it is FedAvg of the same model, bottleneck included; set model.bottleneck=0 for none",
        ),
        (
            "forms",
            "in paper form all layers are matched without noise; in adaptive form those before the bottleneck alone, "
            "and of one sample all layers at the code that was read off",
        ),
    ),
    usual=(("model", "mlp"), ("model.widths", "64"), ("model.bottleneck", "256")),
)
