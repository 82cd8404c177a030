"""Property inference: whether a batch held samples with a property."""
