"""A native table that is published in Iceberg's REST catalog: Iceberg's Spark, DuckDB and pyiceberg read it from there."""

from __future__ import annotations

import datetime as dt
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import LongType, NestedField

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.table.table import Table
from tests.conformance.iceberg.test_published import COLUMNS, rows, same
from tests.conformance.iceberg_rest.client import RestServer
from tests.conformance.iceberg_spark.client import IcebergSpark

_numbers = itertools.count()
PLAIN = [("id", "BIGINT NOT NULL"), ("s", "STRING")]


class Shop:
    """A lake whose program gave the server as the catalog `prod`; its tables are published in a database of their own."""

    def __init__(self, server: RestServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.lake = self.connect()
        self.database = f"published{next(_numbers)}"
        self.lake.create_database("d")
        self.options = {
            "metadata.iceberg.storage": "rest-catalog",
            "metadata.iceberg.rest.uri": server.uri,
            "metadata.iceberg.database": self.database,
            "metadata.iceberg.manifest-compression": "deflate",
            "write-only": "true",
        }

    def connect(self, **more: str) -> Lake:
        given = {"catalog.prod.type": "rest", "catalog.prod.uri": self.server.uri, **more}
        return lakelet.connect(str(self.folder), given)

    def create(
        self, columns: Any = PLAIN, *, name: str = "d.t", keys: Any = None, parts: Any = None, **more: str
    ) -> Table:
        options = {**self.options, **{key.replace("__", "."): text for key, text in more.items()}}
        return self.lake.create_table(name, columns, primary_key=keys, partitioned_by=parts, options=options)

    @property
    def library(self) -> Catalog:
        return load_catalog("reader", type="rest", uri=self.server.uri)

    def shown(self, name: str = "t") -> IcebergTable:
        return self.library.load_table(f"{self.database}.{name}")

    def ids(self, name: str = "t") -> list[int]:
        return sorted(self.shown(name).scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def shop(iceberg_rest: RestServer, tmp_path: Path) -> Shop:
    return Shop(iceberg_rest, tmp_path)


def plain(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "s": f"s{number}"} for number in ids]


def test_each_commit_is_one_of_the_catalog(shop: Shop) -> None:
    table = shop.create()
    table.write(plain(1, 2))
    table.write(plain(3))
    table.delete(where="id = 1")
    found = shop.shown()
    assert shop.ids() == [2, 3]
    assert [one.snapshot_id for one in found.metadata.snapshots] == [1, 2, 3]
    assert found.properties["gc.enabled"] == "false"
    uuid = found.metadata.table_uuid
    table.tags.create("first", version=2)
    assert shop.shown().scan(snapshot_id=shop.shown().snapshot_by_name("first").snapshot_id).to_arrow().num_rows == 3
    table.tags.delete("first")
    assert list(shop.shown().metadata.refs) == ["main"]
    table.rename_column("s", "t")
    table.add_column("more", "INT")
    table.write([{"id": 9, "t": "new", "more": 1}])
    assert shop.shown().scan().to_arrow().sort_by("id").to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()
    table.drop_column("more")
    shop.server.seen()
    table.write([{"id": 10, "t": "newer"}])
    assert shop.server.seen().count("UPDATE_TABLE") == 1
    assert shop.shown().metadata.table_uuid == uuid
    assert shop.ids() == [2, 3, 9, 10]


@pytest.mark.parametrize("storage", ["table-location", "catalog-location"])
def test_spark_and_duckdb_read_from_the_catalog(iceberg_spark: IcebergSpark, shop: Shop, storage: str) -> None:
    table = shop.create(COLUMNS, parts=["part", "week"], **{"metadata__iceberg__storage-location": storage})
    catalog = f"spark.sql.catalog.{shop.database}"
    for name, value in (
        ("", "org.apache.iceberg.spark.SparkCatalog"),
        (".type", "rest"),
        (".uri", shop.server.uri),
        (".cache-enabled", "false"),
    ):
        iceberg_spark.sql(shop.folder, f"SET `{catalog}{name}`=`{value}`")

    def check() -> None:
        same(iceberg_spark.sql(shop.folder, f"SELECT * FROM {shop.database}.{shop.database}.t ORDER BY id"), table)
        location = shop.shown().metadata_location
        same(iceberg_spark.duckdb(f"SELECT * FROM iceberg_scan('{location}') ORDER BY id"), table)

    table.write(rows(0))
    check()
    table.delete(where="id % 3 = 0")
    table.rename_column("text", "words")
    table.write([{"id": 100, "part": "p/1", "week": dt.date(2024, 1, 8), "words": "w"}])
    check()


def test_deletion_vectors_in_the_catalog(iceberg_spark: IcebergSpark, shop: Shop) -> None:
    """Version 3 of the format, whose rows are numbered on from snapshot to snapshot."""
    table = shop.create(
        keys=["id"],
        bucket="1",
        **{
            "deletion-vectors__enabled": "true",
            "deletion-vectors__bitmap64": "true",
            "write-only": "false",
            "metadata__iceberg__format-version": "3",
        },
    )
    for start in range(3):
        table.write([{"id": number, "s": f"{start}"} for number in range(start, start + 4)])
    found = iceberg_spark.duckdb(f"SELECT * FROM iceberg_scan('{shop.shown().metadata_location}') ORDER BY id")
    assert found.to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()
    assert shop.shown().metadata.format_version == 3


def test_a_silent_catalog_fails_no_commit_and_is_caught_up(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    table = shop.create()
    table.write(plain(1))
    uuid = shop.shown().metadata.table_uuid
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        shop.server.fault("before", 503)
        table.write(plain(2))
        # Carried out, and the answer is lost.
        shop.server.fault("after", 500)
        table.write(plain(3))
    assert "REST catalog" in caplog.text
    assert shop.ids() == [1, 2, 3]
    shop.server.stop()
    table.write(plain(4))
    table.write(plain(5))
    shop.server.start()
    assert shop.ids() == [1, 2, 3]
    table.write(plain(6))
    assert shop.ids() == [1, 2, 3, 4, 5, 6]
    assert [one.snapshot_id for one in shop.shown().metadata.snapshots] == [1, 2, 3, 4, 5, 6]
    assert shop.shown().metadata.table_uuid == uuid


def test_snapshots_expire_with_the_tables(shop: Shop) -> None:
    kept = {
        "write-only": "false",
        "snapshot__num-retained__min": "2",
        "snapshot__num-retained__max": "2",
        "snapshot__time-retained": "1 ms",
    }
    table = shop.create(**kept)
    for number in range(5):
        table.write(plain(number))
    assert shop.ids() == [0, 1, 2, 3, 4]
    assert len(shop.shown().metadata.snapshots) == 2


def test_a_rollback_begins_a_new_table(shop: Shop) -> None:
    """The sequence numbers of an Iceberg table never fall."""
    table = shop.create()
    for number in range(3):
        table.write(plain(number))
    table.rollback(1)
    assert shop.ids() == [0]
    table.write(plain(7))
    assert shop.ids() == [0, 7]


def test_what_others_write_there_is_replaced(shop: Shop) -> None:
    table = shop.create()
    table.write(plain(1))
    theirs = shop.shown()
    theirs.append(theirs.scan().to_arrow())
    table.write(plain(2))
    assert shop.ids() == [1, 2]


def test_another_table_of_that_name_is_left_alone(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.library.create_namespace(shop.database)
    columns = Schema(NestedField(1, "id", LongType(), required=False))
    there = shop.library.create_table(f"{shop.database}.t", columns)
    table = shop.create()
    with caplog.at_level(logging.WARNING):
        table.write(plain(1))
        shop.lake.drop_table("d.t")
    assert "is another table" in caplog.text
    assert shop.shown().metadata.table_uuid == there.metadata.table_uuid


def test_a_dropped_and_a_renamed_table_are_withdrawn(shop: Shop) -> None:
    shop.create().write(plain(1))
    files = sorted(shop.folder.rglob("*.parquet"))
    shop.lake.rename_table("d.t", "d.u")
    assert shop.ids("u") == [1]
    assert not shop.library.table_exists(f"{shop.database}.t")
    assert len(sorted(shop.folder.rglob("*.parquet"))) == len(files)
    shop.lake.drop_table("d.u")
    assert not shop.library.table_exists(f"{shop.database}.u")
    again = shop.create(name="d.u")
    again.write(plain(2))
    assert shop.ids("u") == [2]


def test_two_programs_publish_at_once(shop: Shop) -> None:
    """What was published of a newer version is not taken back by a program that is late."""
    table, other = shop.create(), shop.connect().table("d.t")
    table.write(plain(1))
    shop.server.fault("before", 409)
    other.write(plain(2))
    table.write(plain(3))
    assert shop.ids() == [1, 2, 3]
    assert [one.snapshot_id for one in shop.shown().metadata.snapshots] == [1, 2, 3]


def test_rule_26_an_address_that_only_the_table_names_is_never_asked(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    table = shop.create(metadata__iceberg__table="mine")
    table.write(plain(1))
    shop.server.seen()
    stranger = lakelet.connect(str(shop.folder))
    stranger.sql(f"CREATE CATALOG kept WITH ('type' = 'rest', 'uri' = '{shop.server.uri}')")
    shop.server.seen()
    with caplog.at_level(logging.WARNING):
        lakelet.connect(str(shop.folder)).table("d.t").write(plain(2))
    assert "not among those of this program" in caplog.text
    assert shop.server.seen() == []
    # The next commit of a program that may makes up for it.
    table.write(plain(3))
    assert shop.ids("mine") == [1, 2, 3]


def test_a_secret_of_the_program_is_used(shop: Shop) -> None:
    shop.server.need_token("open sesame")
    try:
        lake = shop.connect(**{"catalog.prod.token": "open sesame"})
        lake.create_table("d.t", PLAIN, options=shop.options).write(plain(1))
    finally:
        shop.server.need_token("")
    assert shop.ids() == [1]
    for file in shop.folder.rglob("*"):
        assert not file.is_file() or b"sesame" not in file.read_bytes()


def test_the_program_itself_reads_what_it_has_published(shop: Shop) -> None:
    table = shop.create()
    for number in range(3):
        table.write(plain(number))
        found = shop.lake.sql(f"SELECT id FROM prod.{shop.database}.t ORDER BY id").rows()
        assert found == [(one,) for one in range(number + 1)]
