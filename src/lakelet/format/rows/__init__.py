"""BinaryRow and its hash."""
