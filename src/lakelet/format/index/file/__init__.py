"""File indexes: what tells of a data file that it cannot hold a value, beside the file or inside of its manifest entry."""
