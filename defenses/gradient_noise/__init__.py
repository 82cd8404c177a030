"""Noise on gradients: clients add Gaussian or Laplacian noise of a chosen size to their uploads."""
