"""Tables without keys: rows in and out, memory, small writes."""
