"""All tables by name. Each is the constant `TABLE` of a module, which is imported when the table is needed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from fedarena.reproduce.table import Table

TABLES = {
    "baffle/adaptive": "fedarena.reproduce.baffle.adaptive",
    "baffle/compute": "fedarena.reproduce.baffle.compute",
    "baffle/fedzo": "fedarena.reproduce.baffle.fedzo",
    "baffle/figure2": "fedarena.reproduce.baffle.figure2",
    "baffle/figure3": "fedarena.reproduce.baffle.figure3",
    "baffle/figure5": "fedarena.reproduce.baffle.figure5",
    "baffle/guideline4": "fedarena.reproduce.baffle.guideline4",
    "baffle/server": "fedarena.reproduce.baffle.server",
    "baffle/table1": "fedarena.reproduce.baffle.table1",
    "baffle/table2": "fedarena.reproduce.baffle.table2",
    "baffle/table4": "fedarena.reproduce.baffle.table4",
    "baffle/table4-large": "fedarena.reproduce.baffle.table4_large",
    "dbcl/figure3": "fedarena.reproduce.dbcl.figure3",
    "dbcl/gradient-sketches": "fedarena.reproduce.dbcl.gradient_sketches",
    "dbcl/neighbours": "fedarena.reproduce.dbcl.neighbours",
    "dbcl/property": "fedarena.reproduce.dbcl.property",
    "dbcl/smoother-limits": "fedarena.reproduce.dbcl.smoother_limits",
    "dbcl/table1": "fedarena.reproduce.dbcl.table1",
    "dbcl/table1-rest": "fedarena.reproduce.dbcl.table1_rest",
    "external/bucketing": "fedarena.reproduce.external.bucketing",
    "external/byzfl": "fedarena.reproduce.external.byzfl",
    "external/dumbbell": "fedarena.reproduce.external.dumbbell",
    "external/flower": "fedarena.reproduce.external.flower",
    "inference/digits": "fedarena.reproduce.inference.digits",
    "inference/epsilon": "fedarena.reproduce.inference.epsilon",
    "inference/rules": "fedarena.reproduce.inference.rules",
    "inference/spotlight": "fedarena.reproduce.inference.spotlight",
    "inference/membership-rounds": "fedarena.reproduce.inference.membership_rounds",
    "inversion/defenses": "fedarena.reproduce.inference.inversion_defenses",
    "inversion/phases": "fedarena.reproduce.inference.inversion_phases",
    "inversion/images": "fedarena.reproduce.inference.inversion_images",
    "membership/lira": "fedarena.reproduce.inference.membership_lira",
    "inversion/faces": "fedarena.reproduce.inference.inversion_faces",
    "pbpfl/encryption": "fedarena.reproduce.pbpfl.encryption",
    "pbpfl/precision": "fedarena.reproduce.pbpfl.precision",
    "pbpfl/table1": "fedarena.reproduce.pbpfl.table1",
    "pbpfl/table2": "fedarena.reproduce.pbpfl.table2",
    "pbpfl/table3": "fedarena.reproduce.pbpfl.table3",
    "pbpfl/unmask": "fedarena.reproduce.pbpfl.unmask",
    "two-stage/bank": "fedarena.reproduce.two_stage.bank",
    "two-stage/claim1": "fedarena.reproduce.two_stage.claim1",
    "two-stage/claim6": "fedarena.reproduce.two_stage.claim6",
    "two-stage/figure1": "fedarena.reproduce.two_stage.figure1",
    "two-stage/figure2": "fedarena.reproduce.two_stage.figure2",
    "two-stage/logs-alone": "fedarena.reproduce.two_stage.logs_alone",
    "two-stage/logs-rates": "fedarena.reproduce.two_stage.logs_rates",
    "two-stage/logs-shares": "fedarena.reproduce.two_stage.logs_shares",
    "two-stage/logs-ttbb": "fedarena.reproduce.two_stage.logs_ttbb",
    "two-stage/sign-rules": "fedarena.reproduce.two_stage.sign_rules",
    "two-stage/table2": "fedarena.reproduce.two_stage.table2",
    "two-stage/table3": "fedarena.reproduce.two_stage.table3",
    "two-stage/table4": "fedarena.reproduce.two_stage.table4",
    "two-stage/table5": "fedarena.reproduce.two_stage.table5",
    "two-stage/table6": "fedarena.reproduce.two_stage.table6",
    "two-stage/tables10-14": "fedarena.reproduce.two_stage.tables10to14",
    "two-stage/table15": "fedarena.reproduce.two_stage.table15",
    "two-stage/table16": "fedarena.reproduce.two_stage.table16",
    "two-stage/table17": "fedarena.reproduce.two_stage.table17",
}
"""Name → module."""


def named(names: Iterable[str], only: str) -> list[str]:
    """Those of these names that begin so; where one is just so, it alone, since others may begin with it."""
    those = [name for name in names if name.startswith(only)]
    return [only] if only in those else those


def table_of(name: str) -> Table:
    """The table with that name."""
    return table_in(TABLES[name])


def table_in(module: str) -> Table:
    """The table that a module holds."""
    table: Table = import_module(module).TABLE
    return table
