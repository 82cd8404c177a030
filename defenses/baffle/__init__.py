"""BAFFLE (Feng et al. 2023): clients send differences of losses, from forward passes alone."""
