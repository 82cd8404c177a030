"""Tables of inference attacks across defenses."""
