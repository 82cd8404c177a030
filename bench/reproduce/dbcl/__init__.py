"""The tables and figures of the DBCL paper."""
