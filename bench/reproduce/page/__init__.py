"""The papers' numbers gathered from all tables, beside what was measured here."""
