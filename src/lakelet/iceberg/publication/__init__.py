"""Native tables that are published in an Iceberg REST catalog."""
