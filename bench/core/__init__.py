"""Values and tools that know nothing of federated learning."""
