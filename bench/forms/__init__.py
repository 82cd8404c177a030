"""Forms of computation: the same client step for many clients at once.

Each form is chosen by the model's structure, never by its name, and a test holds it to
`fedarena.local.upload` run alone.
"""

from fedarena.forms.choose import run_general, uploads
from fedarena.forms.inputs import InputMap

__all__ = ["InputMap", "run_general", "uploads"]
