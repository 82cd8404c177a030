"""DBCL (dual-basis collaborative learning): clients see sketched weights and send sketched gradients."""
