"""Cards of the property attacks: light descriptions and options, without the implementation."""
