"""One table that Iceberg's Spark runtime and we change in turns: each goes on from what the other left, and both show the same
rows after every turn."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from tests.conformance.iceberg_spark.client import IcebergSpark
from tests.conformance.iceberg_tables import insert, rows_of

T = "iceberg.d.t"
MERGE_ON_READ = (
    "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
)


class Turns:
    """A table of ids and texts, its rows by id, and two who change it."""

    def __init__(self, spark: IcebergSpark, folder: Path) -> None:
        self._spark, self.folder = spark, folder
        self.lake = lakelet.connect(str(folder))
        self.catalog = self.lake.catalogs.open("iceberg")
        self.catalog.create_namespace("d")
        self.rows: dict[int, str | None] = {}

    def spark(self, words: str) -> None:
        self._spark.sql(self.folder, words)

    def ours(self, words: str) -> None:
        self.lake.sql(words)

    def deleted_by_value(self, where: str) -> None:
        self._spark.equality_delete(self.folder, "d.t", ["id"], where)

    def insert(self, rows: dict[int, str | None], *, mode: str = "append", branch: str | None = None) -> None:
        table = pa.table({"id": pa.array(rows, pa.int64()), "s": pa.array(rows.values(), pa.string())})
        insert(self.catalog, "d.t", table, mode=mode, branch=branch)

    def keep(self, holds: Callable[[int, str | None], bool]) -> None:
        self.rows = {id_: s for id_, s in self.rows.items() if holds(id_, s)}

    def check(self, branch: str = "main") -> None:
        """Both show the model's rows."""
        expected = rows_of(pa.table({"id": list(self.rows), "s": list(self.rows.values())}))
        theirs = self._spark.sql(self.folder, f"SELECT id, s FROM {T} VERSION AS OF '{branch}'")
        assert rows_of(theirs) == expected
        assert rows_of(self.lake.sql(f"SELECT id, s FROM {T} VERSION AS OF '{branch}'").to_arrow()) == expected


@pytest.fixture
def turns(iceberg_spark: IcebergSpark, tmp_path: Path) -> Turns:
    made = Turns(iceberg_spark, tmp_path)
    made.spark(
        f"CREATE TABLE {T} (id bigint, s string) USING iceberg PARTITIONED BY (truncate(10, id)) "
        f"TBLPROPERTIES ('format-version'='2', {MERGE_ON_READ})"
    )
    made.spark(f"INSERT INTO {T} SELECT id, CONCAT('s', id % 3) FROM range(40)")
    made.rows = {id_: f"s{id_ % 3}" for id_ in range(40)}
    return made


def test_changes_of_rows(turns: Turns) -> None:
    turns.spark(f"DELETE FROM {T} WHERE id % 7 = 1")
    turns.keep(lambda id_, s: id_ % 7 != 1)
    turns.ours(f"DELETE FROM {T} WHERE id IN (2, 12, 13)")
    turns.keep(lambda id_, s: id_ not in (2, 12, 13))
    turns.check()
    turns.deleted_by_value("id IN (3, 14, 24)")
    turns.keep(lambda id_, s: id_ not in (3, 14, 24))
    turns.insert({3: "again", 100: None, -1: "below"})
    turns.rows |= {3: "again", 100: None, -1: "below"}
    turns.check()
    turns.ours(f"UPDATE {T} SET s = 'ours' WHERE id BETWEEN 4 AND 11")
    turns.rows = {id_: "ours" if 4 <= id_ <= 11 else s for id_, s in turns.rows.items()}
    turns.spark(f"UPDATE {T} SET s = 'spark' WHERE id BETWEEN 9 AND 16")
    turns.rows = {id_: "spark" if 9 <= id_ <= 16 else s for id_, s in turns.rows.items()}
    turns.check()
    turns.ours(
        f"MERGE INTO {T} AS t USING (SELECT 9 AS id, 'merged' AS s UNION ALL SELECT 200, 'merged') AS u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, u.s)"
    )
    turns.rows |= {9: "merged", 200: "merged"}
    turns.spark(f"DELETE FROM {T} WHERE id = 200")
    turns.keep(lambda id_, s: id_ != 200)
    turns.check()


def test_overwrites_and_specs(turns: Turns) -> None:
    turns.spark(f"DELETE FROM {T} WHERE id = 5")
    turns.insert({6: "new", 33: "new"}, mode="overwrite_partitions")
    turns.keep(lambda id_, s: 10 <= id_ < 30)
    turns.rows |= {6: "new", 33: "new"}
    turns.check()
    turns.ours(f"ALTER TABLE {T} ADD PARTITION FIELD s")
    turns.insert({7: None, 8: "null", 9: ""})
    turns.rows |= {7: None, 8: "null", 9: ""}
    turns.spark(f"ALTER TABLE {T} ADD PARTITION FIELD bucket(4, id)")
    turns.spark(f"INSERT INTO {T} VALUES (40, 'spark'), (41, NULL)")
    turns.insert({42: "ours"})
    turns.rows |= {40: "spark", 41: None, 42: "ours"}
    turns.spark(f"DELETE FROM {T} WHERE s IS NULL OR id IN (10, 42)")
    turns.keep(lambda id_, s: s is not None and id_ not in (10, 42))
    turns.check()
    assert len(turns.catalog.table("d.t").metadata.specs()) == 3
    turns.ours(f"CALL sys.iceberg_rewrite_data_files(`table` => '{T}', min_input_files => 1)")
    turns.check()
    turns.insert({40: "spark"}, mode="overwrite_partitions")
    turns.check()
    turns.ours(f"INSERT OVERWRITE {T} PARTITION (s = 'spark') VALUES (44)")
    turns.keep(lambda id_, s: s != "spark")
    turns.rows |= {44: "spark"}
    turns.check()
    turns.ours(f"CALL sys.iceberg_rewrite_manifests('{T}')")
    expire_snapshots(turns.catalog.table("d.t"), older_than_ms=2**62, retain_last=1)
    turns.check()
    turns.spark("CALL iceberg.system.rewrite_data_files(table => 'd.t', options => map('rewrite-all', 'true'))")
    turns.insert({43: "last"})
    turns.rows |= {43: "last"}
    turns.check()


def test_a_branch_then_fast_forward(turns: Turns) -> None:
    turns.ours(f"ALTER TABLE {T} CREATE BRANCH dev")
    turns.insert({50: "dev"}, branch="dev")
    turns.check()
    main, turns.rows = turns.rows, turns.rows | {50: "dev"}
    turns.check("dev")
    turns.spark(f"DELETE FROM {T}.branch_dev WHERE id < 20")
    turns.keep(lambda id_, s: id_ >= 20)
    turns.check("dev")
    branch, turns.rows = turns.rows, main
    turns.check()
    turns.ours(f"CALL sys.iceberg_fast_forward('{T}', 'main', 'dev')")
    turns.rows = branch
    turns.check()
    turns.insert({51: "dev"}, branch="dev")
    turns.spark("CALL iceberg.system.fast_forward('d.t', 'main', 'dev')")
    turns.rows |= {51: "dev"}
    turns.check()
