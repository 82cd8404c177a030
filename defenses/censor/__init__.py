"""CENSOR (Zhang et al. 2025): clients send a random vector at a right angle to their gradient."""
