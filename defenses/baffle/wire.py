"""Names of what crosses BAFFLE's wires, for the protocol, for who reads them and for who forges them."""

SEED, COUNT, DIFFERENCES = "seed", "count", "differences"
"""4 bytes that both ends expand; how many differences a client sends, where that is its own choice; ΔL_1 … ΔL_K."""
