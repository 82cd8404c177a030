"""Code that the membership attacks share; it contains no attack."""
