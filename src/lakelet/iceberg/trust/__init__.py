"""Trust rules: what a stored file, a statement, table metadata and a catalog's server may set, and what only the program may."""
