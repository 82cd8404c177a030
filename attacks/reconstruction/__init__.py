"""Attacks that reconstruct the images of a batch."""
