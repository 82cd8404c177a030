"""What the poisoning attacks share; no attack stands here."""
