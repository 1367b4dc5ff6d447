"""What can be done to the tables of a lake beside reading and writing rows: the layer under every edge.

    parse ── a frozen request ── an operation ── a value ── rows, a printed table, a JSON document

The command line and the procedures of SQL are edges over these modules, and so is a service: an edge reads its own form of
arguments, opens the table, hands a request over, and shows the value that comes back. What may be asked together, which
defaults hold and what is not found is decided here, once.

    compaction           compact one table or many, merge manifests, change the number of buckets
    tags, branches       names of versions
    rollback             an older version becomes the newest
    expiry               snapshots and partitions that are no longer kept
    unreferenced_files   files that nothing points at, and files that are gone
    check, repair        damaged files, wrong hints
    consumers            positions of readers
    statistics           statistics of rows and columns
    migration            folders of Parquet files, copies of tables
    iceberg_maintenance, iceberg_refs    the same of Iceberg tables

Nothing here prints, knows a statement's text or keeps state; operations over several tables report each as it is done.
"""
