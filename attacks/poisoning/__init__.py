"""Attacks by corrupted clients, which take part in training."""
