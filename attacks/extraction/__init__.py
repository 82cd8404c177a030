"""Attacks that steal the server's model during training."""
