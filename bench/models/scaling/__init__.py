"""Positive scalings of hidden units: the symmetry of networks with ReLU units."""
