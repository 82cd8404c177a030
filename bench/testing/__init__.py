"""Laws that every method keeps, for the tests of methods: `fedarena.testing.check("my_method.py")`.

This project's own tests hold its methods to the same laws.
"""

from fedarena.testing.check import Outcome, check, examine, laws
from fedarena.testing.law import LawBroken

__all__ = ["LawBroken", "Outcome", "check", "examine", "laws"]
