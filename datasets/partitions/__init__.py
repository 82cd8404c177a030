"""How a data set is split among clients."""

CARDS: dict[str, str] = {}
