"""Gradient pruning: clients send the entries of largest magnitude alone."""
