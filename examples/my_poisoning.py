"""A poisoning attack: corrupted clients send what they should, backwards and three times as long."""

from fedarena.contracts.poisoning import Poisoning
from fedarena.core.card import Card
from fedarena.core.tensors import scale


class Backwards(Poisoning):
    def craft(self, view, memory, rng):  # view.own: what the protocol would have them send
        return scale(-3.0, view.own), memory


CARD = Card(
    name="backwards",
    kind="attack",
    title="The honest upload, backwards",
    target=Backwards,
    usual=(("clients", "10"), ("corrupted", "2"), ("model", "mlp"), ("batch_size", "8"), ("lr", "0.2")),
)
