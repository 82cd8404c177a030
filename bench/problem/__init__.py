"""The learning problem: task, loss, schedule, data split, and the training step of a client."""
