"""What several tests share: small federations, hand-made boards and suites, and a fresh Python process."""
