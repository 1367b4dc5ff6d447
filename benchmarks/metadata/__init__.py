"""Plans, commits and the Avro codec."""
