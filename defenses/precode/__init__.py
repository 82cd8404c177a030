"""PRECODE (Scheliga et al. 2022): a variational bottleneck in the model makes gradients random."""
