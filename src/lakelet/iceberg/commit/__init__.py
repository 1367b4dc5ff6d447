"""Commits of the driver: add and remove files as one snapshot of a branch, atomically.

change           which files are added and removed, and what kind of snapshot that is
overwrite        which files an overwrite replaces, computed from a head
overlap          whether a file of another partition spec may hold rows of a partition
snapshot_files   writes manifests and the list of them
manifest_merge   which small manifests are merged
summary          the totals of a snapshot
attempts         sends the change to the catalog: retried after a conflict, looked up after a lost response
replace_files    the change of compaction and of row-level statements
"""
