"""Code that the poisoning attacks share; it contains no attack."""
