"""Records in: casting, routing and writing files."""
