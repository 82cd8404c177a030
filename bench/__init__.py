"""FedArena: defenses of federated learning meet attacks, limited to what they would really see."""

__version__ = "0.1.0"
