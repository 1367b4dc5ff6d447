"""UPDATE, DELETE and MERGE by turns with Iceberg's Spark runtime, which writes delete files where we write files anew: after
every statement both read the rows that a plain DuckDB table has after the same statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lakelet
from tests.conformance.iceberg_spark.client import IcebergSpark

NAME = "iceberg.shop.t"
MERGED = (
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
)
START = "INSERT INTO {t} VALUES " + ", ".join(f"({n}, {n % 3}, {n * 10}, 'row {n}')" for n in range(12))


class Turns:
    """A table that both engines change, and what it should hold."""

    def __init__(self, folder: Path, spark: IcebergSpark, clauses: str) -> None:
        self.folder, self.spark = folder, spark
        self.lake = lakelet.connect(str(folder))
        self.duck = duckdb.connect()
        self.lake.sql("CREATE DATABASE iceberg.shop")
        self.lake.sql(f"CREATE TABLE {NAME} (id BIGINT, p INT, v BIGINT, s STRING) {clauses}")
        self.duck.execute("CREATE TABLE t (id BIGINT, p INT, v BIGINT, s VARCHAR)")

    def ours(self, text: str) -> None:
        self.lake.sql(text.format(t=NAME))
        self._check(text)

    def theirs(self, text: str) -> None:
        self.spark.sql(self.folder, text.format(t=NAME))
        self._check(text)

    def gone(self, where: str) -> None:
        """Spark's runtime deletes rows by their ids."""
        self.spark.equality_delete(self.folder, "shop.t", ["id"], where)
        self._check(f"DELETE FROM {{t}} WHERE {where}")

    def _check(self, text: str) -> None:
        self.duck.execute(text.format(t="t"))
        expected = sorted(self.duck.execute("SELECT * FROM t").fetchall(), key=repr)
        assert sorted(self.lake.sql(f"SELECT * FROM {NAME}").rows(), key=repr) == expected, f"ours after {text}"
        found = self.spark.sql(self.folder, f"SELECT * FROM {NAME}").to_pylist()
        assert sorted((tuple(row.values()) for row in found), key=repr) == expected, f"theirs after {text}"


@pytest.fixture(params=["", "PARTITIONED BY (p)", "PARTITIONED BY (bucket(2, id))"])
def turns(request: pytest.FixtureRequest, tmp_path: Path, iceberg_spark: IcebergSpark) -> Iterator[Turns]:
    made = Turns(tmp_path, iceberg_spark, f"{request.param} TBLPROPERTIES ({MERGED})")
    yield made
    made.duck.close()


def test_turns(turns: Turns) -> None:
    turns.ours(START)
    turns.theirs("DELETE FROM {t} WHERE id IN (1, 5)")
    turns.ours("UPDATE {t} SET v = v + 1, p = 1 WHERE v BETWEEN 30 AND 70")
    turns.theirs("UPDATE {t} SET s = 'theirs' WHERE id = 4 OR id = 9")
    turns.gone("id in (2, 6)")
    # The ids that were deleted by value come again, and stay.
    turns.ours(
        "MERGE INTO {t} AS o USING (VALUES (2, 'new'), (4, 'old'), (6, 'new'), (11, 'gone')) AS n(i, s) ON o.id = n.i "
        "WHEN MATCHED AND n.s = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET s = n.s "
        "WHEN NOT MATCHED THEN INSERT (id, p, v, s) VALUES (n.i, 0, 0, n.s)"
    )
    turns.theirs("DELETE FROM {t} WHERE s = 'old'")
    turns.ours("DELETE FROM {t} WHERE v = (SELECT max(v) FROM {t})")
    turns.ours("UPDATE {t} SET id = id + 100")
    turns.theirs("DELETE FROM {t} WHERE p = 0")
    turns.ours("DELETE FROM {t}")
