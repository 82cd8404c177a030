"""Secure aggregation: the server learns the sum of the uploads, and no upload. Any protocol can take it."""

CARDS: dict[str, str] = {
    "pairwise-masks": "fedarena.defenses.secure.cards.pairwise_masks:CARD",
    "zero-sum": "fedarena.defenses.secure.cards.zero_sum:CARD",
}
