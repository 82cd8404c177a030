"""Reports: a board as one markdown page with figures, each with its alternative text and the command that makes it."""
