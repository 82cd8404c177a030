"""Attacks that infer the classes of the samples behind an upload."""
