"""Cards of the membership attacks: light descriptions and options, without the implementation."""
