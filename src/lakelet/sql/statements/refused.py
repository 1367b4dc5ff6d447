"""Unsupported statements and clauses of other databases, each with its alternative."""

from __future__ import annotations

_ONE_COMMIT = "every statement is a transaction of its own and all or nothing"
_EXTENSIONS = "no extension of DuckDB is installed or loaded by a statement"
# Statements by their first word.
STATEMENTS = {
    "BEGIN": f"{_ONE_COMMIT}: write what belongs together by one INSERT or MERGE",
    "START": f"{_ONE_COMMIT}: write what belongs together by one INSERT or MERGE",
    "COMMIT": f"{_ONE_COMMIT}: it is committed when it has run",
    "END": f"{_ONE_COMMIT}: it is committed when it has run",
    "ROLLBACK": f"{_ONE_COMMIT}: CALL sys.rollback takes a table back to an earlier snapshot",
    "ABORT": f"{_ONE_COMMIT}: CALL sys.rollback takes a table back to an earlier snapshot",
    "SAVEPOINT": f"{_ONE_COMMIT}: CALL sys.create_tag keeps a version to come back to",
    "RELEASE": f"{_ONE_COMMIT}: CALL sys.delete_tag removes a tag",
    "LOCK": "writers need no locks: the later of two commits wins, or is told of the conflict",
    "GRANT": "who may read or write is decided by the store: its files or its bucket",
    "REVOKE": "who may read or write is decided by the store: its files or its bucket",
    "VACUUM": "CALL sys.compact rewrites files, CALL sys.expire_snapshots and sys.remove_orphan_files remove them",
    "OPTIMIZE": "CALL sys.compact rewrites files",
    "ANALYZE": "CALL sys.analyze gathers statistics",
    "CHECKPOINT": "every statement is durable when it has run",
    "REPLACE": "INSERT into a table with a PRIMARY KEY replaces rows of the same key, CREATE OR REPLACE TABLE a table",
    "UPSERT": "INSERT into a table with a PRIMARY KEY replaces rows of the same key",
    "ATTACH": "read_duckdb('file', table_name='t') reads a table of a DuckDB file, CREATE CATALOG names one of Iceberg tables",
    "DETACH": "DROP CATALOG forgets a catalog of Iceberg tables",
    "INSTALL": f"{_EXTENSIONS}: install it for DuckDB outside of Lakelet",
    "LOAD": f"{_EXTENSIONS}: an installed one is loaded by the query that needs it",
    "EXPORT": "COPY … TO writes the rows of a table or a query to a file",
    "IMPORT": "COPY … FROM and CREATE TABLE … AS FROM 'file' read rows from a file",
}
_NUMBERS = "DEFAULT uuid() gives every row an id of its own, row_number() OVER () numbers those of a query"
_FUNCTIONS = "queries have the functions of DuckDB; CREATE VIEW keeps a query, PREPARE one with parameters"
# What is created or dropped, by the word behind CREATE or DROP.
OBJECTS = {
    "MATERIALIZED": "CREATE TABLE … AS keeps the rows of a query, CREATE OR REPLACE TABLE … AS renews them",
    "INDEX": "a table finds rows by its PRIMARY KEY, its partitions and the statistics of its files; bloom filters are "
    "the options 'parquet.bloom.filter.…'",
    "UNIQUE": "a table finds rows by its PRIMARY KEY, which holds every key once",
    "BRANCH": "CALL sys.create_branch makes one, CREATE BRANCH b ON catalog.database.table one of an Iceberg table",
    "TAG": "CALL sys.create_tag makes one, CREATE TAG t ON catalog.database.table one of an Iceberg table",
    "EXTERNAL": "the location of a table follows from its name: CREATE TABLE",
    "FUNCTION": _FUNCTIONS,
    "MACRO": _FUNCTIONS,
    "PROCEDURE": "the procedures are those that CALL sys.… names",
    "SEQUENCE": f"a table counts no rows: {_NUMBERS}",
    "TYPE": "a table has the types of the format alone: ROW<…> holds several values, STRING the words of an ENUM",
    "DOMAIN": "a table has the types of the format alone",
    "TRIGGER": "nothing runs when rows are written but the option 'commit.callbacks', classes of the calling program",
    "RULE": "nothing runs when rows are written but the option 'commit.callbacks', classes of the calling program",
    "EXTENSION": "an engine's extensions are its own matter",
    "SECRET": "the keys of a store are options of connect(), or of the environment",
    "USER": "who may read or write is decided by the store: its files or its bucket",
    "ROLE": "who may read or write is decided by the store: its files or its bucket",
}
_UNCHECKED = "a query finds the rows that break it"
# Constraints, by their first word.
CONSTRAINTS = {
    "UNIQUE": "a table checks no UNIQUE columns but its PRIMARY KEY, of which it keeps the newest row of every key",
    "CHECK": f"a table checks no conditions but NOT NULL: {_UNCHECKED}, and INSERT … SELECT … WHERE keeps them out",
    "FOREIGN": f"a table checks no foreign keys: {_UNCHECKED}, with an ANTI JOIN",
    "REFERENCES": f"a table checks no foreign keys: {_UNCHECKED}, with an ANTI JOIN",
}
