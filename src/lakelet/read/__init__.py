"""Records out: splits to Arrow batches."""
