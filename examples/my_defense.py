"""A defense: FedAvg whose clients send only the signs of their gradients."""

from fedarena.core.card import Card
from fedarena.core.tensors import scale
from fedarena.defenses.fedavg.protocol import FedAvg


class Signs(FedAvg):
    def client(self, down, batch, memory, noise):  # one client; pure, so that an adaptive attack can go through it
        up, memory = super().client(down, batch, memory, noise)
        return scale(0.01, {name: t.sign() for name, t in up.items()}), memory


CARD = Card(name="signs", kind="defense", title="Signs of gradients", target=Signs)
