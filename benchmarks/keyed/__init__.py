"""Tables with primary keys: write, merge read, rows by key, upsert."""
