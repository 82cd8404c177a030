"""The tables of the PBPFL paper."""
