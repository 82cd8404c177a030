"""Cards of the estimate attacks: light descriptions and options, without the implementation."""
