"""A board as a web page: one file, which loads nothing from the network."""
