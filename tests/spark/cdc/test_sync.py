"""ls.sync_cdc on batch frames: every kind of event of every envelope, and the rows that it means."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls
from lakelet.errors import InvalidError
from tests.spark.cdc.cdc_frames import rows, synced
from tests.spark.cdc.sample_events import AFTER, FIELDS, SOURCE, canal, debezium, maxwell, text

DEBEZIUM_ROW = {
    "id": 7,
    "price": Decimal("12.34"),
    "any_number": "0.001",
    "born": date(2024, 1, 1),
    "at_ms": datetime(2024, 1, 1, 0, 0, 0, 123000),
    "at_us": datetime(2024, 1, 1, 0, 0, 0, 123456),
    "instant": datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
    "clock": time(1, 0),
}


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


def test_debezium_with_schema(spark: SparkSession, warehouse: str) -> None:
    counts = synced(spark, warehouse, [debezium("c", None, AFTER, fields=FIELDS)])
    assert (counts.rows, counts.skipped, counts.quarantined) == (1, 0, 0)
    assert rows(warehouse) == [DEBEZIUM_ROW]
    kinds = {field.name: str(field.type) for field in lakelet.connect(warehouse).table("shop.item").schema.fields}
    assert kinds == {
        "id": "BIGINT NOT NULL",
        "price": "DECIMAL(10, 2)",
        "any_number": "STRING",
        "born": "DATE",
        "at_ms": "TIMESTAMP(3)",
        "at_us": "TIMESTAMP(6)",
        "instant": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "clock": "TIME(6)",
    }


def test_debezium_every_event(spark: SparkSession, warehouse: str) -> None:
    """Each kind in its order; those that mean no row are skipped, and a truncate is put aside."""
    other = {**AFTER, "id": 8}
    events: list[object] = [
        debezium("r", None, other, fields=FIELDS, lsn=1),
        debezium("c", None, AFTER, fields=FIELDS, lsn=2),
        debezium("u", AFTER, {**AFTER, "price": "/w=="}, fields=FIELDS, lsn=3),
        debezium("u", None, {**other, "price": None, "born": None}, fields=FIELDS, lsn=4),
        debezium("c", None, {**AFTER, "id": 9}, fields=FIELDS, lsn=5),
        debezium("d", {**AFTER, "id": 9}, None, fields=FIELDS, lsn=6),
        debezium("m", None, None),
        None,
        {"ts_ms": 1704067200000},
        {"status": "END", "id": "571", "event_count": 2, "data_collections": []},
        {"source": SOURCE, "ts_ms": 1, "databaseName": "shop", "ddl": "ALTER TABLE item ADD note text"},
        debezium("t", None, None, lsn=7),
    ]
    counts = synced(spark, warehouse, events)
    assert (counts.rows, counts.skipped, counts.quarantined) == (12, 5, 1)
    changed = {**DEBEZIUM_ROW, "id": 8, "price": None, "born": None}
    assert rows(warehouse) == [{**DEBEZIUM_ROW, "price": Decimal("-0.01")}, changed]
    [aside] = lakelet.connect(warehouse).table("shop.cdc_quarantine").scan().to_arrow().to_pylist()
    assert "truncate" in aside["reason"]
    assert aside["raw"].decode() == text(events[-1])
    assert aside["target"] == "shop.item"


def test_debezium_without_schema_reads_text_by_the_types_of_the_table(spark: SparkSession, warehouse: str) -> None:
    lake = lakelet.connect(warehouse)
    lake.create_database("shop")
    kinds = {
        "id": "BIGINT NOT NULL",
        "price": "DECIMAL(10, 2)",
        "any_number": "STRING",
        "born": "DATE",
        "clock": "TIME(6)",
    }
    kinds |= {"at_ms": "TIMESTAMP(3)", "at_us": "TIMESTAMP(6)", "instant": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}
    lake.create_table("shop.item", list(kinds.items()), primary_key=["id"], options={"bucket": 1})
    synced(spark, warehouse, [debezium("c", None, {**AFTER, "note": "neu ✓"})])
    [found] = rows(warehouse)
    assert found == {**DEBEZIUM_ROW, "any_number": '{"scale":3,"value":"AQ=="}', "note": "neu ✓"}


def test_canal_every_event(spark: SparkSession, warehouse: str) -> None:
    events: list[object] = [
        canal("INSERT", [{"id": "7", "price": "12.34", "note": None}, {"id": "8", "price": "1", "note": "ü"}], id=1),
        canal("UPDATE", [{"id": "7", "price": "13.00", "note": None}], old=[{"price": "12.34"}], id=2),
        canal("INSERT", [{"id": "9", "price": "0.10", "note": "x"}], id=3),
        canal("DELETE", [{"id": "9", "price": "0.10", "note": "x"}], id=4),
        canal("UPDATE", [{"id": "10", "price": "1", "note": "ü"}], old=[{"id": "8"}], id=5),
        canal("ALTER", None, isDdl=True, mysqlType=None, pkNames=None, id=6),
        canal("EXPLODE", [{"id": "1"}], id=7),
    ]
    counts = synced(spark, warehouse, events, format="canal", table=None, database="mirror", primary_key=())
    assert (counts.rows, counts.skipped, counts.quarantined) == (8, 1, 1)
    assert rows(warehouse, "mirror.item") == [
        {"id": 10, "price": Decimal("1.00"), "note": "ü"},
        {"id": 7, "price": Decimal("13.00"), "note": None},
    ]
    assert lakelet.connect(warehouse).table("mirror.item").schema.primary_keys == ("id",)


def test_maxwell_every_event(spark: SparkSession, warehouse: str) -> None:
    big, exact = 2**60 + 1, "-27062845529266.3769123"
    events: list[object] = [
        maxwell("insert", {"id": 7, "price": 12.34, "note": None}, xid=1),
        maxwell("update", {"id": 7, "price": 13.10, "note": "a"}, old={"price": 12.34, "note": None}, xid=2),
        maxwell("bootstrap-start", {}, xid=3),
        text(maxwell("bootstrap-insert", {"id": big, "price": 1.5, "note": "b"}, xid=4)).replace("1.5", exact),
        maxwell("insert", {"id": 9, "price": 1.0}, xid=5),
        maxwell("delete", {"id": 9, "price": 1.0}, xid=6),
        {"type": "table-alter", "database": "shop", "table": "item", "old": {}, "def": {}, "ts": 1, "sql": "alter"},
        '{"type": "insert", "data": {"id": 1',
    ]
    counts = synced(spark, warehouse, events, format="maxwell")
    assert (counts.rows, counts.skipped, counts.quarantined) == (8, 2, 1)
    assert rows(warehouse) == [
        {"id": str(big), "price": exact, "note": "b"},
        {"id": "7", "price": "13.1", "note": "a"},
    ]


def test_other_types_become_text_where_that_is_asked_for(spark: SparkSession, warehouse: str) -> None:
    """`on_conflict="string"` was refused by the table for every type."""
    key = {"field": "id", "type": "int32"}
    before: list[dict[str, Any]] = [
        key,
        {"field": "n", "type": "int64"},
        {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    ]
    after: list[dict[str, Any]] = [key, *({"field": one, "type": "string"} for one in ("n", "born", "at"))]
    first = {"id": 1, "n": 7, "born": 19723, "at": 1704067200500000}
    synced(spark, warehouse, [debezium("c", None, first, fields=before)])
    second = {"id": 2, "n": "seven", "born": "unknown", "at": "noon"}
    event = debezium("c", None, second, fields=after)
    with pytest.raises(InvalidError, match="on_conflict='string' makes it STRING"):
        synced(spark, warehouse, [event])
    synced(spark, warehouse, [event], on_conflict="string")
    later = debezium("c", None, {**first, "id": 3}, fields=before)
    synced(spark, warehouse, [later], on_conflict="string")
    expected = [
        {"id": 1, "n": "7", "born": "2024-01-01", "at": "2024-01-01 00:00:00.500000"},
        second,
        # What comes as another type later has the text that `to-string` gives it.
        {"id": 3, "n": "7", "born": "2024-01-01", "at": "2024-01-01 00:00:00.5"},
    ]
    assert rows(warehouse) == expected
    read = ls.table(spark, warehouse, "shop.item").orderBy("id").toArrow().to_pylist()
    assert read == expected
