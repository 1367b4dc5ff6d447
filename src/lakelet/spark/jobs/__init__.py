"""Jobs on whole tables: loading, copying, adopting files, counting, comparing. One file each."""
