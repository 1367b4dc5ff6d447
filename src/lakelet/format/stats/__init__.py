"""Statistics of data files and of tables."""
