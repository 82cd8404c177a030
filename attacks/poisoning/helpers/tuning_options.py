"""Options of attacks that can choose their strength on simulated federations."""

from dataclasses import dataclass

from fedarena.core.options import option


@dataclass(frozen=True)
class TuningOptions:
    """How much an attacker may simulate before the first round (`fedarena.federation.tuning`)."""

    tune: int = option(0, "simulated runs that the attacker may spend on choosing its strength; 0: none", low=0)
    tune_rounds: int = option(
        0, "rounds of a simulated run; 0: as many as the real one has", low=0, idle_with=("tune", 0)
    )
