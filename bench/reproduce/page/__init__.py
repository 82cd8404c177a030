"""The page that sets the papers' numbers of all tables beside what was measured here."""
