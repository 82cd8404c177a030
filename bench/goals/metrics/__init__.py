"""Metrics: each compares the answer of an attack with the truth."""
