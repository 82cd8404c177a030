"""Contracts: everything that the author of a defense, a rule, a secure sum or an attack reads."""
