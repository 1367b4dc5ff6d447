"""Operations on the tables of a lake beside reading and writing rows: the layer below every interface.

    parse ── a frozen request ── an operation ── a value ── rows, a printed table, a JSON document

The command line, the procedures of SQL and a service are interfaces over these modules: an interface parses its own form of
arguments, opens the table, passes a request, and shows the returned value. Which arguments may be combined, which
defaults hold and what is not found is decided here, once.

    compaction           compact one table or many, merge manifests, change the number of buckets
    tags, branches       names of versions
    rollback             an older version becomes the newest
    expiry               expired snapshots and partitions
    unreferenced_files   orphan files, and files that are missing
    check, repair        damaged files, wrong hints
    consumers            positions of readers
    statistics           statistics of rows and columns
    migration            folders of Parquet files, copies of tables
    iceberg_maintenance, iceberg_refs    the same of Iceberg tables

Nothing here prints, knows a statement's text or keeps state; operations over several tables report each as it is done.
"""
