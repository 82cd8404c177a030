"""What a party reaches that trains on its own samples alone."""
