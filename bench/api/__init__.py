"""The Python API, as `import fedarena as fa` offers it.

Every function does what a command of `bench` does, with the same options and the same records. Options have the names
of the command's, with `_` for `-`; those of `--set` keep their dotted names:

    results = fa.run("dbcl", "dlg", rounds=200, seeds=[0, 1], **{"dbcl.hash": "uniform"})
    results.table()
    results.to_frame()
    results.plot()

Bad input raises `fa.UserError` with the line that the command would print.
"""

from __future__ import annotations

from fedarena.api.boards import Difference, Leaderboard, compare, load_board
from fedarena.api.results import Records, Results, read_records, read_transcript
from fedarena.api.runs import explain, methods, run, run_suite
from fedarena.api.single_methods import aggregate, invert

__all__ = [
    "Difference",
    "Leaderboard",
    "Records",
    "Results",
    "aggregate",
    "compare",
    "explain",
    "invert",
    "load_board",
    "methods",
    "read_records",
    "read_transcript",
    "run",
    "run_suite",
]
