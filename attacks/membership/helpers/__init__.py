"""What the membership attacks share; no attack stands here."""
