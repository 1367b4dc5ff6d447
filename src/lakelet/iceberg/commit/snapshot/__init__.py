"""The files of a new snapshot: manifests, their list, the summary; and the files that are live in an old one."""
