"""The names of what PBPFL's parties send and keep."""

R_A = "r_a"
GAMMA, MASK = "gamma", "mask."
"""The server's secrets: γ, and r of group g as f"{MASK}{g}"."""
GRADIENT, SIGMA, BETA = UPLOADS = ("gradient.", "sigma.", "beta.")
"""Prefixes of a client's three uploads, by parameter."""
