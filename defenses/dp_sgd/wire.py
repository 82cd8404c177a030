"""Names of the tensors that a client of DP-SGD draws and keeps."""

NOISE = "noise"
"""N(0, (σC)² I), drawn by a client for one round: one vector [d] in the order of the parameters."""

PREVIOUS = "previous"
"""A client's memory: its last upload [d], from which its momentum comes. A party that reads the wire knows it, too."""
