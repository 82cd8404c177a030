"""The page that compares the papers' numbers of all tables with what was measured here."""
