"""Forms of computation: the same client step for many clients at once.

Each form is chosen by the model's structure, never by its name, and a test holds it to
`fedarena.problem.local_training.upload` run alone.
"""

from fedarena.problem.client_steps.choose import run_general, uploads, uploads_apart
from fedarena.problem.client_steps.inputs import InputMap
from fedarena.problem.client_steps.onto import Onto

__all__ = ["LOCAL_TRAINING_VERSION", "InputMap", "Onto", "run_general", "uploads", "uploads_apart"]

LOCAL_TRAINING_VERSION = 2
"""The version of what clients compute in local epochs, which keys of records hold. With 2 small networks go side by
side, which changes the last digits."""
