"""The names of the goals that an inference attack may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

GoalName = Literal[
    "reconstruction",
    "membership",
    "labels",
    "extraction",
    "property",
    "inversion",
    "training-membership",
    "client-membership",
    "source",
    "estimate",
    "active-reconstruction",
    "curious-poisoning",
]
"""The goal of an attack; `fedarena.goals` has a file of that name.

In this order, the attack infers the samples behind an upload, whether a sample was among them, their classes, the
server's model in training, whether samples behind an upload share a property, what a class looks like to the model,
whether a sample was in the training set, whether it is in the data set of a client, which client holds a sample that
was trained on, the gradient itself, the samples behind an upload that the server itself has shaped, or those behind a
broadcast that corrupted clients have poisoned.
"""

GOAL_NAMES: tuple[str, ...] = get_args(GoalName)

JUDGE_VERSIONS: Mapping[str, int] = {
    "": 6,
    "reconstruction": 4,
    "labels": 5,
    "membership": 5,
    "training-membership": 3,
    "client-membership": 2,
    "property": 3,
    "extraction": 2,
    "inversion": 2,
    "estimate": 2,
}
"""The version of how answers of a goal are judged, by goal, 1 for the others; "" stands for runs without an inference
attack, poisoned or not.

It is part of a record's key, because the same attack on the same run then has other metrics. Version 2 holds
reconstructions against other real samples (`fedarena.goals.metrics.identification`), counts of reconstructions and
labels those that could be named, and gives every rate an interval that holds near 0 and 1. It compares models with
what can be had without a federation, and poisoned ones over time.

In version 3 it is no help to a guess at a batch to be assigned to its victims. The guess of labels that knows no upload
has the same denominator as the attack's. No sample is a candidate for membership twice. A fall
counts as the worst window though the clean run had not gained enough. Both models are shown the same triggered inputs.

In version 4 every look after a fall is in a window, and no look that an attack asked for is. A client's guess of labels
that reads no upload knows which classes it holds itself.

In version 5 a window of a poisoned run is as long as a tenth of the rounds, also where an attack says that it begins
later, or the clean run learns late. In version 6 no word of an attack lowers the score that it leaves: a model that had
not learned when the attack began cannot fall.

Reconstructions and membership of version 4, labels of version 5 and estimates of version 2 are of a client that is
drawn in each round, because a protocol may protect one client and no others. Membership of version 5, that in the
training set of version 3 and properties of version 3 have intervals of AUCs that hold where few candidates go wrong.
Membership in a client's data set of version 2 asks about up to 100 samples of each client, and no longer 50.
"""
