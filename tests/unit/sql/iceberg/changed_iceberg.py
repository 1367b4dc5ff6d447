"""Iceberg tables that UPDATE, DELETE and MERGE are tried on; what queries give is what pyiceberg reads."""

from pathlib import Path
from typing import Any

import lakelet
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.session import Session
from tests.unit.sql_session import SqlSession

NAME = "iceberg.shop.t"
# Every kind of table whose rows can be changed.
LAYOUTS = {
    "plain": "",
    "identity": "PARTITIONED BY (p)",
    "bucket": "PARTITIONED BY (bucket(3, id), truncate(1, s))",
    "version 1": "PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '1')",
    "merge on read": "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')",
    "evolved": "",
}
START = [(1, "a", 10, "one"), (2, "b", 20, "two"), (3, "a", 30, None), (4, "b", None, "four"), (5, "a", 50, "five")]


class IcebergSession(SqlSession):
    """A session with a lake in a folder, whose catalog has an empty database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakelet.connect(str(folder))
        self.session = Session(self.lake)
        self.rows("CREATE DATABASE iceberg.shop")

    def files(self) -> dict[str, bytes]:
        """All that is stored, but for the catalog's own database."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and ".db" not in path.name)
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    @property
    def table(self) -> IcebergTable:
        """The table that is changed."""
        return self.lake.catalogs.open("iceberg").table("shop.t")


def filled(folder: Path, layout: str, **properties: str) -> IcebergSession:
    """A table of five rows in two commits."""
    sql = IcebergSession(folder)
    if layout == "evolved":
        _evolve(sql)
    else:
        sql.rows(
            f"CREATE TABLE {NAME} (id BIGINT NOT NULL, p STRING, v BIGINT, s STRING) {LAYOUTS[layout]}",
            f"INSERT INTO {NAME} VALUES (1, 'a', 10, 'one'), (2, 'b', 20, 'two'), (3, 'a', 30, NULL)",
            f"INSERT INTO {NAME} VALUES (4, 'b', NULL, 'four'), (5, 'a', 50, 'five')",
        )
    for key, value in properties.items():
        sql.rows(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('{key}' = '{value}')")
    return sql


def _evolve(sql: IcebergSession) -> None:
    """Files of three specs and three schemas; the last of these has no file yet."""
    sql.rows(
        f"CREATE TABLE {NAME} (id INT NOT NULL, s STRING, q STRING, v INT, x STRING) PARTITIONED BY (truncate(2, id))",
        f"INSERT INTO {NAME} VALUES (1, 'one', 'a', 10, 'gone'), (2, 'two', 'b', 20, NULL)",
        f"ALTER TABLE {NAME} RENAME COLUMN q TO p",
        f"ALTER TABLE {NAME} ALTER COLUMN v TYPE BIGINT",
        f"ALTER TABLE {NAME} REPLACE PARTITION FIELD truncate(2, id) WITH p",
        f"INSERT INTO {NAME} VALUES (3, NULL, 'a', 30, 'x'), (4, 'four', 'b', NULL, 'x')",
        f"ALTER TABLE {NAME} DROP COLUMN x",
        f"ALTER TABLE {NAME} DROP PARTITION FIELD p",
        f"ALTER TABLE {NAME} ADD PARTITION FIELD bucket(2, id)",
        f"INSERT INTO {NAME} VALUES (5, 'five', 'a', 50)",
        f"ALTER TABLE {NAME} ALTER COLUMN s AFTER v",
        f"ALTER TABLE {NAME} ALTER COLUMN id TYPE BIGINT",
    )


def rows(sql: IcebergSession, branch: str = "main") -> list[tuple[Any, ...]]:
    """The rows of the table in order, as we and pyiceberg read them."""
    name = NAME if branch == "main" else f"{NAME}$branch_{branch}"
    found = sql.rows(f"SELECT id, p, v, s FROM {name} ORDER BY ALL")
    library = sql.table.library
    there = library.scan().use_ref(branch).to_arrow() if library.metadata.refs else library.scan().to_arrow()
    names = ("id", "p", "v", "s")
    assert sorted([tuple(row[name] for name in names) for row in there.to_pylist()], key=repr) == sorted(
        found, key=repr
    )
    return found


def values(sql: IcebergSession) -> dict[int, int | None]:
    """The column v by id."""
    return {row[0]: row[2] for row in rows(sql)}


def data_files(sql: IcebergSession) -> set[str]:
    """The paths of the files that the head has."""
    return {task.file.file_path for task in sql.table.library.scan().plan_files()}


def stored_data(sql: IcebergSession) -> int:
    """How many data files there are, of whichever snapshot or none."""
    return sum(path.endswith(".parquet") for path in sql.files())


def operations(sql: IcebergSession) -> list[str]:
    """What the snapshots did, oldest first."""
    found = []
    for snapshot in sql.table.metadata.snapshots:
        assert snapshot.summary is not None
        found.append(snapshot.summary.operation.value)
    return found
