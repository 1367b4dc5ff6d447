"""Planning: which files a scan must read."""
