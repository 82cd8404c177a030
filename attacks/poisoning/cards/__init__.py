"""Cards of the poisoning attacks: light descriptions and options, without the implementation."""
