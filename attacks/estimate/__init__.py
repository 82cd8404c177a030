"""Attacks that estimate the gradient behind what was seen."""
