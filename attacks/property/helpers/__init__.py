"""What the property attack is built from; no attack stands here."""
