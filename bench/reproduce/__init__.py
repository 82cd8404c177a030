"""Papers' tables, measured anew. A module per table: `SETTING` and `rows(data_dir, seed, progress)`."""

TABLES = {
    "dbcl/table1": "fedarena.reproduce.dbcl_table1",
}
