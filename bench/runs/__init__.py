"""Runs: from a specification through training and attacks to records."""
