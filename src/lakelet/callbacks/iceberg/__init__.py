"""Publication of a table as an Iceberg table: metadata that describes the files which need no merge."""
