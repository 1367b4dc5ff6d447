"""The store on a disk of this machine: links, fsync, leftovers of interrupted writes."""
