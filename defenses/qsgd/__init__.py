"""QSGD (Alistarh et al. 2017): clients round each entry of their upload to one of a few levels, at random."""
