"""Options of attacks whose colluders train on their own (`local_backdoor.py`), apart so that cards import no torch."""

from dataclasses import dataclass

from fedarena.core.options import option


@dataclass(frozen=True)
class LocalOptions:
    """How a colluder trains."""

    epochs: int = option(6, "epochs over the colluder's samples in a round", low=1)
    lr: float = option(0.05, "learning rate of its steps", above=0)
    batch_size: int = option(64, "samples of a step, at most", low=1)
    ball: float | None = option(
        None, "radius about the broadcast onto which the model is projected after each epoch; none: no bound", above=0
    )
