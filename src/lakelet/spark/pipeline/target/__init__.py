"""The tables that a pipeline writes: created, checked and emptied, in Lakelet's format and Iceberg's."""
