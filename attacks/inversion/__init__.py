"""Attacks that show what a class looks like to a model."""
