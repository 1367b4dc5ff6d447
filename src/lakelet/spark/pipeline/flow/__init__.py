"""One flow of a pipeline: over whole inputs, streams or changes, into a table or a sink, until it succeeds."""
