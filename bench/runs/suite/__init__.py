"""Suites: whole matrices of trials, described in a file, planned, run, and continued where they stopped."""
