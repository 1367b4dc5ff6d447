"""The driver's commit: a change of files becomes one snapshot of a branch, or nothing.

change           which files are added and removed, and what kind of snapshot that is
overwrite        which files an overwrite replaces, worked out from a head
overlap          whether a file of another partition spec may hold rows of a partition
snapshot_files   writes manifests and the list of them
manifest_merge   which small manifests are put together
summary          the totals of a snapshot
attempts         sends the change to the catalog: again after a conflict, looking it up after silence
replace_files    the change of compaction and of row-level statements
"""
