"""Which task writes which rows: hash, bucket and channel as Spark expressions."""
