"""A poisoning attack as a function: what should be sent, backwards and three times as long."""

import fedarena as fa


@fa.poisoning("short-backwards", title="The honest upload, backwards")
def craft(own, rng):  # own [f, d]: what the corrupted clients would send; rng: a torch.Generator
    return -3.0 * own
