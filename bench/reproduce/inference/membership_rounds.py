"""Membership by all rounds of a training: FedMIA, its five baselines, a regression, and LiRA on the released model.

Zhu et al. 2025 report FedMIA above its baselines at low false positive rates, on AlexNet and ResNet18 with CIFAR-100,
ten clients and 300 rounds. Here eleven clients hold 100 images of Fashion-MNIST each and train small
networks by one local epoch a round, so that the networks fit their few samples. The numbers of the paper cannot be
compared. The order can be: whether statistics against other clients find more members than those of one client alone,
and whether many rounds tell more than one.

The attacker is the server, in paper form: uploads are taken as plain gradients. All attacks read one training and the
same ten rounds. Ten clients are asked about, each with 100 samples that it holds and 100 that nobody does. LiRA reads
the released model alone. It is asked about the samples of all ten clients, and trains `SHADOWS` models.

An AUC and its interval are of the candidates of all clients together. `one_client` is the AUC of the client that is
told best, where that counts (`fedarena.goals.client_membership`).

`low` and `high` are the 95 % interval of one seed's value. With 1,000 outsiders a false positive rate of 1 % is ten of
them, and one of 0.1 % is a single one. The lower end of the interval at 0.1 % is 0 then, whatever the scores
(`fedarena.goals.metrics.membership.true_positive_interval`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedarena import goals
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.metrics.membership import RATES, membership_metrics
from fedarena.goals.prepared import OpenRecord
from fedarena.goals.ranking import Ranking
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, between, step
from fedarena.reproduce.table import Row, Table, measured_by_name
from fedarena.runs import trial

READ = 10
"""Rounds that are read."""
SHADOWS = 8
CLIENTS, SAMPLES = 11, 100
STATISTICS = ("fedmia", "fedmia-loss", "avg-cosine", "loss-series", "grad-cosine", "grad-diff", "blackbox-loss")
ATTACKS: Mapping[str, tuple[str, dict[str, str]]] = {
    **{name: ("fedmia", {"statistic": name, "rounds": str(READ)}) for name in STATISTICS},
    "upload-regression": ("upload-regression", {"rounds": str(READ)}),
    "lira": ("membership-inference", {"shadows": str(SHADOWS)}),
}
"""Row → attack and its options."""
DEFENSES: Mapping[str, tuple[str, dict[str, str]]] = {
    "fedavg": ("fedavg", {}),
    "gradient-noise": ("gradient-noise", {"std": "0.01"}),
    "pruning": ("pruning", {"share": "0.9"}),
    "pairwise-masks": ("pairwise-masks", {}),
}
MODELS: Mapping[str, dict[str, str]] = {
    "mlp": {"widths": "16"},
    "cnn": {"channels": "4,8", "widths": "16", "mean": "0.286", "std": "0.353"},
}
SCHEDULE = Schedule(rounds=200, batch_size=10, local_epochs=1, lr=0.1)


@dataclass(frozen=True)
class Federation:
    """What is attacked.

    Attributes:
        model, defense: a name in `MODELS` and one in `DEFENSES`. samples: what each client holds.
        schedule: how it trains.
    """

    model: str
    defense: str
    samples: int = SAMPLES
    schedule: Schedule = SCHEDULE

    @property
    def problem(self) -> ProblemSpec:
        """The federation as a problem."""
        return ProblemSpec(
            dataset="fashion-mnist",
            model=self.model,
            partition="few",
            clients=CLIENTS,
            model_options=registry.find("model", self.model).parse(MODELS[self.model]),
            partition_options=registry.find("partition", "few").parse({"samples": str(self.samples)}),
            schedule=self.schedule,
        )


FEDERATIONS = {f"{model}, {defense}": Federation(model, defense) for model in MODELS for defense in DEFENSES}
"""Piece → what is attacked."""
ENDS = ("", "_low", "_high")
COLUMNS = {
    **{f"auc{end}": f"auc{end}" for end in ENDS},
    **{f"tpr_at_{rate:g}{end}": f"{name}{end}" for name, rate in RATES.items() for end in ENDS},
}
"""Column → metric."""
SETTING = (
    f"Fashion-MNIST, {CLIENTS} clients with {SAMPLES} samples each, {SCHEDULE.rounds} rounds of one local epoch in "
    f"batches of {SCHEDULE.batch_size}, of which the server reads {READ}; who is held by a client, or was trained on"
)


def measure(what: Federation, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Train one federation, and attack it in every way."""
    specs = [_spec(what, compose.parse_attack(*attack), machine, seed) for attack in ATTACKS.values()]
    cells = trial.prepare_together(specs, between(progress, 0.0, 0.1), parties_alone=False)
    attacking = between(progress, 0.1, 1.0)
    rows = []
    for i, (name, spec, (cell, *_)) in enumerate(zip(ATTACKS, specs, cells, strict=True)):
        row = {"model": what.model, "defense": what.defense, "attack": name}
        assert isinstance(cell, OpenRecord), cell.record["reason"]
        assert spec.attack is not None
        rows.append(row | _result(spec.attack, cell, step(attacking, i, len(cells)), seed))
    return rows


def _spec(what: Federation, attack: MethodSpec, machine: Machine, seed: int) -> GroupSpec:
    return GroupSpec(
        problem=what.problem,
        defense=compose.parse_defense(*DEFENSES[what.defense]),
        attack=attack,
        threats=(Threat("server", "paper"),),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )


def _result(method: MethodSpec, cell: OpenRecord, progress: Progress, seed: int) -> Row:
    """The columns of one attack. A rate that its outsiders do not resolve has no value."""
    attack, challenge = compose.make_inference(method), cell.challenge
    goal, answer = goals.find(attack.goal), attack(challenge.view, Rng(seed).child("attack"), progress)
    row: Row = {"accuracy": cell.record["utility"]["clean_accuracy"], "note": ""}
    if isinstance(answer, NotApplicable):
        return row | dict.fromkeys((*COLUMNS, "one_client", "outsiders")) | {"note": f"n/a: {answer.reason}"}
    assert isinstance(goal, Ranking)
    judged = goal.judge(answer, challenge)
    together = membership_metrics(*goal.pooled(answer, challenge))
    return row | {
        **{column: together.get(metric) for column, metric in COLUMNS.items()},
        "one_client": judged["auc"] if "auc_all_clients" in judged else None,
        "outsiders": together["candidates"] / 2,
    }


MEASURED = (*COLUMNS, "one_client", "outsiders", "accuracy")
TABLE = Table(
    setting=SETTING, pieces=tuple(FEDERATIONS), rows=measured_by_name(FEDERATIONS, measure), measured=MEASURED
)
