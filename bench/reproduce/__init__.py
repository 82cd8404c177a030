"""Papers' tables, measured anew. A module per table: `SETTING` and `rows(data_dir, seed, progress)`."""

TABLES = {
    "dbcl/figure3": "fedarena.reproduce.dbcl_figure3",
    "dbcl/table1": "fedarena.reproduce.dbcl_table1",
}
