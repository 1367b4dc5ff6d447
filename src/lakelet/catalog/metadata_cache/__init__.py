"""The tiered cache of a lake: the source and loader of native tables, opening those of Iceberg tables, and own changes."""
