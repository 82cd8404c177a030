"""Sign DP: the majority's sign of private gradients, of which clients send the signs alone."""
