"""The tables and figures of the two-stage paper."""
