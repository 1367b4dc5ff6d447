"""One bucket's tree: sorted runs of rows, and which row of a key wins."""
