"""Cards of the inversion attacks: light descriptions and options, without the implementation."""
