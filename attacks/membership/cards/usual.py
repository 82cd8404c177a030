"""The usual problem of attacks that look for the samples of a client or of a training set: there are few of them."""

FEW_SAMPLES = (
    ("model", "mlp"),
    ("partition", "few"),
    ("clients", "4"),
    ("batch_size", "16"),
    ("rounds", "200"),
)
