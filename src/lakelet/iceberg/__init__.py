"""Iceberg tables: catalogs and metadata are pyiceberg's, the way of rows into files and snapshots is ours.

    catalogs   which Iceberg catalogs a lake knows, and opening them
    catalog    one of them: namespaces and tables
    table      a table, loaded anew when it is asked for
    transaction  begin (a plan for the writers) ─ files written anywhere ─ finish (one snapshot)

Only this package imports pyiceberg; what it hands out is its own.
"""
