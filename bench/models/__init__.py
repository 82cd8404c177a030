"""Models: small modules that say how they are initialised."""

CARDS: dict[str, str] = {}
