"""Table maintenance: compaction, retention, statistics and checks."""
