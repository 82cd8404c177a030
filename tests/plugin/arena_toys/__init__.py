"""A defense, an attack and a data set that plug into FedArena."""
