"""Card of `digit-domains`."""

from fedarena.core.card import Card

PARTS = ("mnist", "usps", "digits")
"""The data sets that it is made from; the place of each is the number of its domain."""

CARD = Card(
    name="digit-domains",
    kind="dataset",
    title="Digit domains: handwritten digits of three origins, grey 28×28",
    target="fedarena.datasets.digit_domains:load",
    version=2,
    departures=(
        "Not from a paper: a stand-in for OfficeHome, with one kind of object drawn, scanned and scaled in three ways.",
        "USPS (16×16) and digits (8×8) are enlarged to 28×28, bilinear, grey levels rounded to 8 bits. Their "
        "digits fill the frame, those of MNIST have a margin of 4 pixels.",
    ),
    facts=(
        ("images", "68729 for training, 12366 for testing"),
        ("shape", "1×28×28"),
        ("classes", "10"),
        (
            "chance of membership",
            "training and held-out samples differ: a forest has AUC 0.57 without an upload (python "
            "benchmarks/membership_blind.py)",
        ),
        ("domains", "0 mnist (60000 for training), 1 usps (7291), 2 digits (1438): the first outweighs the others"),
        ("file", "those of mnist and usps; digits is embedded"),
        ("licence", "CC BY-SA 3.0 (mnist), none stated (usps), CC BY 4.0 (digits)"),
    ),
)
