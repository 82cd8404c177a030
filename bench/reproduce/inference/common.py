"""What the tables of inference attacks have in common: one pairing on its usual problem on digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.defaults import usual_problem
from fedarena.records.schema import Record
from fedarena.reproduce.place import Where
from fedarena.runs import trial

Progress = Callable[[float, str], None]
Settings = Mapping[str, Mapping[str, str]]
"""Options as text, by group: attack, training, model and partition; as after `--set`."""

TRAINING = 0.3
"""Share of a pairing's time that the training is taken to need, for progress."""


def pairing(
    attack: str,
    defense: MethodSpec,
    whom: Sequence[Threat],
    settings: Settings,
    where: Where,
    seed: int,
    progress: Progress,
) -> list[Record]:
    """Train under the defense, attack as everybody; the records as `bench run` writes them, without FedAvg beside them.

    Raises:
        UserError: the attack or the defense refuses the problem.
    """
    cards = registry.find("attack", attack), registry.find("defense", defense.name)
    problem = usual_problem({"dataset": "digits"}, settings, cards)
    made = compose.parse_attack(attack, settings.get("attack", {}))
    spec = GroupSpec(problem, defense, made, tuple(whom), seed, where.device, where.data_dir)
    cells = trial.prepare(spec, lambda share, text: progress(TRAINING * share, text))
    done = []
    for i, one in enumerate(cells):

        def tell(share: float, text: str, i: int = i) -> None:
            progress(TRAINING + (1 - TRAINING) * (i + share) / len(cells), text)

        done.append(trial.attack(one, tell)[0])
    return done
