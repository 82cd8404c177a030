"""Cards of the reconstruction attacks: light descriptions and options, without the implementation."""
