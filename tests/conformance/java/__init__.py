"""Java Paimon, the authority on the format, driven through its core Table API."""
