"""Membership inference: which candidate samples a batch or a training set held."""
