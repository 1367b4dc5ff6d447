"""Iceberg tables: catalogs and metadata through pyiceberg; Lakelet's own writers, readers and commits.

    catalogs   the Iceberg catalogs of a lake, and opening them
    catalog    one of them: namespaces and tables
    table      a table in the version that was loaded
    transaction  begin (a plan for the writers) ─ files written anywhere ─ finish (one snapshot)

Only this package imports pyiceberg; its interface has only types of its own.
"""
