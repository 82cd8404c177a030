"""How many loss differences give a digit away: BAFFLE's honest server beside one that chooses the model.

A client of BAFFLE sends K numbers of a round. The honest but curious server searches for a digit that gives the same
numbers (`dlg` in the adaptive form, told the label). A malicious server sends a model in which the numbers are linear
in the digit, and solves for it. A digit has 64 pixels, and K numbers are K equations. They are equations for all pixels
(`affine-model`, also with the best of 20 seeds), or for the K features that tell most of a digit (`chosen-features`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedarena.core.text.figures import Line, Panel, panels, save_png
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.reproduce.inference.common import IDENTIFIED, Settings, most_identified, pairing
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

DIRECTIONS = (8, 16, 32, 64, 128, 256, 512)
PIXELS = 64
SEARCH = {"labels": "given", "window": "11", "victims": "10", "restarts": "4", "outside": "1", "prior": "none"}
"""The prior of `baffle/adaptive`: no pixel is far outside of [0, 1]."""
SEARCHED = "malicious, best of 20 seeds"
CHOSEN = "malicious, chosen features"
MALICIOUS = Threat("malicious-server", "adaptive")
SERVERS: Mapping[str, tuple[Threat, str, Settings]] = {
    "honest": (Threat("server", "adaptive"), "dlg", {"attack": SEARCH}),
    "malicious": (MALICIOUS, "affine-model", {"attack": {"victims": "10"}}),
    SEARCHED: (MALICIOUS, "affine-model", {"attack": {"victims": "10", "draws": "20"}}),
    CHOSEN: (MALICIOUS, "chosen-features", {"attack": {"victims": "10"}}),
}
"""Kind of server → the party, its attack and the attack's options."""
LARGEST = {"honest": DIRECTIONS[-1], "malicious": PIXELS, SEARCHED: PIXELS // 4, CHOSEN: PIXELS}
"""Server → the largest K that it is asked for. From as many numbers as pixels a malicious one solves for all pixels."""
PIECES = {f"{server}, K = {k}": (server, k) for server in SERVERS for k in DIRECTIONS if k <= LARGEST[server]}
MEASURED = (*IDENTIFIED, "psnr")


def measure(piece: tuple[str, int], machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row."""
    server, k = piece
    threat, attack, settings = SERVERS[server]
    problem = {"problem": {"model": "mlp"}, "training": {"rounds": "20"}, **settings}
    defense = compose.parse_defense("baffle", {"directions": str(k)})
    records = pairing(attack, defense, [threat], problem, machine, seed, progress)
    row = most_identified(records)
    psnr = max((r["metrics"]["psnr"] for r in records if r["status"] == "ok"), default=None)
    return [{"server": server, "K": k, **row, "psnr": psnr}]


def draw(rows: Sequence[Row], path: Path) -> None:
    """The share identified and the PSNR, by K, a line for each server; bars from the lowest to the highest seed."""
    measured = [row for row in rows if row["identified"] is not None]

    def lines(name: str) -> list[Line]:
        drawn = []
        for server in SERVERS:
            values = {k: [r[name] for r in measured if (r["server"], r["K"]) == (server, k)] for k in DIRECTIONS}
            known = {k: some for k, some in values.items() if some}
            if not known:
                continue
            middle = [(min(some) + max(some)) / 2 for some in known.values()]
            half = [(max(some) - min(some)) / 2 for some in known.values()]
            places = [float(DIRECTIONS.index(k)) for k in known]
            kind, _, how = server.partition(", ")
            label = f"{kind} server, {how}" if how else f"{kind} server"
            drawn.append(Line(label, places, middle, bold=server == CHOSEN, error=half))
        return drawn

    ticks = {float(i): str(k) for i, k in enumerate(DIRECTIONS)}
    x = f"K, numbers of an upload (a digit has {PIXELS} pixels)"
    shown = [
        Panel(title="share identified", lines=lines("identified"), x=x, y="identified", unit=True, ticks=ticks),
        Panel(title="PSNR", lines=lines("psnr"), x=x, y="dB", ticks=ticks),
    ]
    save_png(panels([shown], "Digits from K loss differences of BAFFLE"), path)


TABLE = Table(
    setting="digits, mlp, 20 rounds, one sample a client; what K differences tell an honest and a malicious server",
    pieces=tuple(PIECES),
    rows=measured_by_name(PIECES, measure),
    measured=MEASURED,
    draw=draw,
)
