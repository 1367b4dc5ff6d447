"""Tables that Iceberg's Spark runtime wrote, in every version they had: our readers show the rows that Spark shows.

Delete files, deletion vectors, equality deletes, specs and schemas that changed, branches and tags; each test leaves a table that
`same_as_spark` reads snapshot by snapshot, in Spark, by our scan and by SQL.
"""

from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.iceberg.scan import scan_of
from tests.conformance.iceberg_spark.client import IcebergSpark
from tests.conformance.iceberg_tables import EDGES, every_type, for_spark, rows_of

MERGE_ON_READ = (
    "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
)


class Shop:
    """A lake with the database `d`, which Spark writes and we read."""

    def __init__(self, spark: IcebergSpark, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.lake: Lake = lakelet.connect(str(folder))
        self.catalog = self.lake.catalogs.open("iceberg")
        self.catalog.create_namespace("d")

    def __call__(self, *statements: str) -> pa.Table:
        """Runs statements in Spark, in which `t` is the table; gives the rows of the last."""
        found = [self.spark.sql(self.folder, text.replace("$t", "iceberg.d.t")) for text in statements]
        return found[-1]

    def scanned(self, **version: object) -> pa.Table:
        """The rows by our scan."""
        scan = scan_of(self.catalog.table("d.t"), **version)  # type: ignore[arg-type]
        batches = [batch for file in scan.files for batch in scan.read(file)]
        return pa.Table.from_batches(batches, scan.schema)

    def same_as_spark(self) -> None:
        """Every snapshot, branch and tag, and the table as it is."""
        metadata = self.catalog.table("d.t").metadata
        self.check("", {})
        for id_ in [snapshot.snapshot_id for snapshot in metadata.snapshots]:
            self.check(f" VERSION AS OF {id_}", {"snapshot_id": id_})
        for name in metadata.refs:
            self.check(f" VERSION AS OF '{name}'", {"ref": name})

    def check(self, words: str, version: dict[str, object]) -> None:
        expected = self(f"SELECT * FROM $t{words}")
        found = self.scanned(**version)
        assert found.column_names == expected.column_names, words
        assert rows_of(found) == rows_of(expected), words
        said = self.lake.sql(f"SELECT * FROM iceberg.d.t{words}").to_arrow()
        assert said.column_names == expected.column_names, words
        assert rows_of(said) == rows_of(expected), words


@pytest.fixture
def shop(iceberg_spark: IcebergSpark, tmp_path: Path) -> Shop:
    return Shop(iceberg_spark, tmp_path)


def ids(table: pa.Table) -> list[int]:
    found: list[int] = sorted(table.column("id").to_pylist())
    return found


def create(shop: Shop, version: int, *, partitioned: str = "", properties: str = MERGE_ON_READ) -> None:
    shop(
        f"CREATE TABLE $t (id bigint, s string, at timestamp_ntz) USING iceberg {partitioned} "
        f"TBLPROPERTIES ('format-version'='{version}', {properties})",
        # One file of several row groups would be read the same: rows are few, and positions count from each file's start.
        "INSERT INTO $t SELECT id, IF(id % 7 = 0, NULL, CONCAT('s', id % 5)), "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' + make_interval(0, 0, 0, id % 3) FROM range(60)",
    )


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (days(at), bucket(2, id))"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_and_deletion_vectors(shop: Shop, version: int, partitioned: str) -> None:
    create(shop, version, partitioned=partitioned)
    shop(
        "DELETE FROM $t WHERE id IN (0, 5, 17, 59)",
        "UPDATE $t SET s = 'changed' WHERE id % 10 = 3",
        "DELETE FROM $t WHERE s IS NULL",
        "MERGE INTO $t USING (SELECT 13 AS id UNION ALL SELECT 99) u ON $t.id = u.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, 'merged')",
        "DELETE FROM $t WHERE id % 2 = 0",
    )
    contents = {row["content"] for row in shop("SELECT content FROM $t.files").to_pylist()}
    assert contents == {0, 1}
    assert ids(shop.scanned()) == [id_ for id_ in range(60) if id_ % 2 and id_ % 7 and id_ not in (5, 13, 17, 59)] + [
        99
    ]
    shop.same_as_spark()


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (truncate(1, s))"], ids=["plain", "partitioned"])
def test_equality_deletes(shop: Shop, partitioned: str) -> None:
    create(shop, 2, partitioned=partitioned)
    assert shop.spark.equality_delete(shop.folder, "d.t", ["id"], "id IN (1, 2, 7)") >= 1
    # Rows that come later stay, whatever their values.
    shop("INSERT INTO $t VALUES (1, 's9', NULL), (7, NULL, NULL)")
    assert ids(shop.scanned()).count(1) == 1
    shop.same_as_spark()
    # By two columns, one of which is NULL here and there; NULL equals NULL.
    shop.spark.equality_delete(shop.folder, "d.t", ["s", "at"], "id IN (14, 20)")
    shop("ALTER TABLE $t RENAME COLUMN s TO renamed", "ALTER TABLE $t ADD COLUMN s string")
    shop("DELETE FROM $t WHERE id = 21")
    shop.same_as_spark()


def test_partition_specs_that_change(shop: Shop) -> None:
    create(shop, 2, partitioned="PARTITIONED BY (days(at))")
    shop(
        "DELETE FROM $t WHERE id = 1",
        "ALTER TABLE $t ADD PARTITION FIELD bucket(4, id)",
        "INSERT INTO $t VALUES (100, 'a', NULL), (101, NULL, TIMESTAMP_NTZ '1969-12-31 23:00:00')",
        "ALTER TABLE $t REPLACE PARTITION FIELD at_day WITH hours(at)",
        "INSERT INTO $t VALUES (102, 'b', TIMESTAMP_NTZ '2024-01-01 05:00:00')",
        "DELETE FROM $t WHERE id % 10 = 2",
        "ALTER TABLE $t DROP PARTITION FIELD id_bucket_4",
        "ALTER TABLE $t ADD PARTITION FIELD truncate(1, s)",
        "INSERT INTO $t VALUES (103, 'c', NULL), (104, NULL, NULL)",
        "DELETE FROM $t WHERE at IS NULL AND id < 104",
    )
    assert len(shop.catalog.table("d.t").metadata.specs()) >= 4
    shop.same_as_spark()


@pytest.mark.parametrize("version", [2, 3])
def test_columns_that_change(shop: Shop, version: int) -> None:
    shop(
        "CREATE TABLE $t (id bigint, n int, f float, m decimal(9, 2), "
        "spot struct<x: int, y: string>, tags array<struct<k: string, v: int>>, named map<string, struct<z: int>>) "
        f"USING iceberg TBLPROPERTIES ('format-version'='{version}', {MERGE_ON_READ})",
        "INSERT INTO $t VALUES (1, 2, 0.1, 1.50, struct(1, 'a'), array(struct('k', 1)), map('a', struct(5))), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ALTER TABLE $t ALTER COLUMN n TYPE bigint",
        "ALTER TABLE $t ALTER COLUMN f TYPE double",
        "ALTER TABLE $t ALTER COLUMN m TYPE decimal(18, 2)",
        "ALTER TABLE $t ADD COLUMN spot.z double",
        "ALTER TABLE $t ADD COLUMN tags.element.more string",
        "ALTER TABLE $t ADD COLUMN named.value.w string",
        "ALTER TABLE $t RENAME COLUMN spot.x TO east",
        "INSERT INTO $t VALUES (3, 5000000000, 0.1, 123456789012.25, struct(1, 'a', 2.5), array(struct('k', 1, 'm')), "
        "map('b', struct(6, 'w')))",
        "ALTER TABLE $t DROP COLUMN spot.y",
        "ALTER TABLE $t DROP COLUMN n",
        "ALTER TABLE $t ADD COLUMN n string AFTER id",
        "ALTER TABLE $t ALTER COLUMN m FIRST",
        "ALTER TABLE $t ADD COLUMN `odd. näme` int",
        "INSERT INTO $t VALUES (1.25, 4, 'text', 2.5, struct(9, 8.5), array(), map(), 7)",
        "DELETE FROM $t WHERE id = 1",
    )
    shop.same_as_spark()


def test_branches_and_tags(shop: Shop) -> None:
    create(shop, 2)
    shop(
        "ALTER TABLE $t CREATE TAG first",
        "ALTER TABLE $t CREATE BRANCH dev",
        "INSERT INTO iceberg.d.t.branch_dev VALUES (1000, 'dev', NULL)",
        "DELETE FROM iceberg.d.t.branch_dev WHERE id < 30",
        "DELETE FROM $t WHERE id >= 30",
        "ALTER TABLE $t ADD COLUMN later int",
        "INSERT INTO $t VALUES (2000, 'main', NULL, 5)",
    )
    assert ids(shop.scanned(ref="dev")) == [*range(30, 60), 1000]
    assert ids(shop.scanned(ref="first")) == list(range(60))
    shop.same_as_spark()


def test_every_type(shop: Shop) -> None:
    schema, spec, rows = every_type(EDGES, void=False)
    del spec
    shop.catalog.library.create_table("d.t", schema)
    shop.spark.insert(shop.folder, "d.t", for_spark(rows))
    assert rows_of(shop.scanned()) == rows_of(rows)
    shop.same_as_spark()


def test_avro_data_files_are_refused_by_name(shop: Shop) -> None:
    create(shop, 2, properties="'write.format.default'='avro'")
    with pytest.raises(InvalidError, match=r"\.avro"):
        shop.scanned()


def test_orc_data_files(shop: Shop) -> None:
    create(shop, 2, properties=f"{MERGE_ON_READ}, 'write.format.default'='orc'")
    shop("DELETE FROM $t WHERE id = 5", "ALTER TABLE $t RENAME COLUMN s TO u", "ALTER TABLE $t ADD COLUMN s int")
    shop.same_as_spark()


def test_values_that_a_later_column_has_by_default(shop: Shop) -> None:
    create(shop, 3)
    shop.spark.add_int(shop.folder, "d.t", "n", 42)
    shop("INSERT INTO $t VALUES (100, NULL, NULL, NULL)")
    shop.same_as_spark()
    assert set(shop.scanned().column("n").to_pylist()) == {42, None}
