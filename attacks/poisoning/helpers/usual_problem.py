"""What the cards of poisoning attacks share."""

USUAL = (
    ("clients", "20"),
    ("corrupted", "4"),
    ("model", "mlp"),
    ("rounds", "300"),
    ("batch_size", "16"),
    ("lr", "0.2"),
    ("eval_every", "10"),
)
"""Twenty clients of which four are corrupted, FedSGD on a small dense network."""
