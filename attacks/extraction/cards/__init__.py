"""Cards of the extraction attacks: light descriptions and options, without the implementation."""
