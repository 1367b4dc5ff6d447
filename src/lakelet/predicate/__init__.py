"""What `where=` means: SQL text to a tree, the tree to pruning decisions and exact row masks."""
