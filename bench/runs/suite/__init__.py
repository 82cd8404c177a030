"""Suites: whole matrices of trials, described in a file, planned, run, and taken up again where they stopped."""
