"""Code that the reconstruction attacks share; it contains no attack."""
