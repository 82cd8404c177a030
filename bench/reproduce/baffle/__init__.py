"""The tables of the BAFFLE paper."""
