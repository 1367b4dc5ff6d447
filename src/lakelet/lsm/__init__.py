"""The LSM tree of one bucket: sorted runs, their merge, and the compaction policy."""
