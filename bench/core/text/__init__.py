"""Formatting of numbers, tables and figures as text."""
