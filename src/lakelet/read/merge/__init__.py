"""What a merge reads: sources of sorted rows, and the pieces they are read in."""
