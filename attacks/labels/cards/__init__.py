"""Cards of the labels attacks: light descriptions and options, without the implementation."""
