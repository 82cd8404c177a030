"""Card and options of `ats`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of ATS."""

    policies: str = option(
        "3-1-7+43-18-18",
        "the public policies, joined by +; each is one to three numbers from 0 to 49 of the paper's transformations, "
        "joined by -",
    )


CARD = Card(
    name="ats",
    kind="defense",
    title="ATS: samples are transformed by public policies before the gradient",
    target="fedarena.defenses.ats.protocol:ATS",
    options=Options,
    paper="Privacy-preserving Collaborative Learning with Automatic Transformation Search (CVPR)",
    authors="Gao, Guo, Zhang, Qiu, Wen, Liu",
    year=2021,
    url="https://arxiv.org/abs/2011.12505",
    equations="Section 4.1, a policy of up to three transformations; the hybrid of two policies of Table 1",
    departures=(
        "The search for policies is left out. The default is the hybrid that the paper's search found for CIFAR-100 "
        "with a ResNet20.",
        "Each sample draws a policy and signs anew at each visit, as in the released code. The crops and flips that "
        "this code adds for all methods are the option training.augment.",
        "Transformations act on numbers in [0, 1] in place of bytes. Equalising and posterising go through bytes, and "
        "their derivative is that of the identity.",
        "The adaptive form undoes the policies on the images that an attack finds. Balunović et al. (2022) break ATS "
        "by attacking early in the training, which the stages of the attacks cover.",
    ),
    check="no number of a paper; transformations against PIL, and what is undone: tests/defenses/ats",
    facts=(
        ("needs", "images"),
        ("down", "W"),
        ("up", "∂L/∂W, or W − W_local, of transformed samples"),
        ("promise", "none: what comes back is a transformed sample, and most transformations can be undone"),
        ("server knows", "W, every upload, the policies; not which of them a sample had, and with which signs"),
        ("malicious server chooses", "the model that each client gets; the policies are the clients' own"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "forms",
            "In paper form what an attack finds is its guess. In adaptive form each image found is taken back through "
            "all policies and signs. The one is kept that explains it best and stays in [0, 1].",
        ),
        ("judged by", "the original samples in both forms"),
    ),
)
