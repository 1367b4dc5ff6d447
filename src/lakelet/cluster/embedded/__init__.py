"""The cluster of one node: no server, no I/O."""
