"""Writers: buffered rows to data files and commit messages."""
