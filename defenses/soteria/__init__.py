"""Soteria (Sun et al. 2021): the representation before the output layer is pruned where it tells most of the input."""
