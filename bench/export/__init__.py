"""Finished records for other tools: tables, and trackers of experiments. One file for each of them."""
