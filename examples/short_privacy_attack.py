"""A privacy attack as a function: the labels of a batch are where the last layer's bias gradient is lowest."""

import fedarena as fa


@fa.privacy_attack("short-labels", title="Labels by the bias gradient", goal="labels")
def labels(seen, view):  # seen: one upload; view: all that the party may know
    return seen.target[seen.output_bias].argsort()[: seen.images]
