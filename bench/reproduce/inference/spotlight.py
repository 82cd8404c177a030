"""What poison gains for corrupted clients that read: `spotlight` against five rules.

Two of eleven clients are corrupted. In the rounds that they attack they send what brings the broadcast nearest to their
victim's upload, and read the difference of broadcasts. `without` is what the same attack identifies of the same victims
if they send what the protocol has them send, and `nearness` the cosine of what they read with the victim's gradient.

Yue, Jin, Wong & Dai (arXiv 2506.11413) say that robust rules may improve such reconstructions by 10 to 15 %.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.reproduce.inference.common import Settings, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

RULES = ("krum", "multi-krum", "median", "trimmed-mean", "mean")
KNOWS = ("own", "omniscient")
BATCHES = (1, 4)

Piece = tuple[str, str, int]
"""Rule, knowledge, batch."""
PIECES: Mapping[str, Piece] = {
    f"{rule}, {knows}, batch {batch}": (rule, knows, batch)
    for batch, knows, rule in itertools.product(BATCHES, KNOWS, RULES)
}
MEASURED = ("identified", "low", "high", "without", "nearness", "cpu_seconds")
SETTING = (
    "digits, mlp of 64 units, 11 clients of which 2 are corrupted, 8 rounds of 20 attacked; what corrupted clients "
    "identify of a victim's samples by poison, and without"
)


def settings(piece: Piece, victims: int = 8) -> Settings:
    """The options of the problem and of the attack, as text."""
    _, knows, batch = piece
    return {
        "model": {"widths": "64"},
        "training": {"rounds": "20", "batch_size": str(batch)},
        "attack": {"victims": str(victims), "knows": knows, "draws": "5000"},
    }


def measure(piece: Piece, machine: Machine, seed: int, progress: Progress, victims: int = 8) -> list[Row]:
    """One rule, for attackers of one knowledge. `victims` replaces the number of rounds attacked."""
    began, (rule, knows, batch) = time.process_time(), piece
    threat, defense = Threat("corrupted-clients", "adaptive"), compose.parse_defense(rule)
    (record,) = pairing("spotlight", defense, (threat,), settings(piece, victims), machine, seed, progress)
    metrics = record["metrics"]
    row: Row = {"rule": rule, "knows": knows, "batch": batch, "note": record["reason"]}
    names = {
        "identified": "identified",
        "low": "identified_low",
        "high": "identified_high",
        "without": "identified_without_poison",
        "nearness": "cosine",
    }
    row |= {column: metrics.get(name) for column, name in names.items()}
    return [row | {"cpu_seconds": time.process_time() - began}]


TABLE = Table(setting=SETTING, pieces=tuple(PIECES), rows=measured_by_name(PIECES, measure), measured=MEASURED)
