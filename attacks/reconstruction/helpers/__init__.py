"""What the reconstruction attacks share; no attack stands here."""
