"""What attacks of several goals share; no attack stands here."""
