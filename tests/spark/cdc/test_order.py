"""The newest change of each key wins: within a batch, across batches, with and without Kafka's places; changed keys."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet import InvalidError
from lakelet.spark.cdc.sync import sync_cdc
from tests.spark.cdc.cdc_frames import kafka_frame, reasons, rows, synced
from tests.spark.cdc.sample_events import debezium

FIELDS: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "qty", "type": "int32", "optional": True}]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


def item(id: int, qty: int | None) -> dict[str, Any]:
    return {"id": id, "qty": qty}


def quantities(warehouse: str) -> dict[int, Any]:
    return {row["id"]: row["qty"] for row in rows(warehouse)}


def test_the_log_of_the_source_decides_and_a_changed_key_deletes_the_old_row(
    spark: SparkSession, warehouse: str
) -> None:
    """Events come in any order, and say the same time: only their places in the log tell which is the last."""
    events: list[object] = [
        debezium("u", item(1, 1), item(1, 5), fields=FIELDS, lsn=900),
        debezium("c", None, item(1, 1), fields=FIELDS, lsn=1000),
        debezium("u", item(2, 7), item(3, 7), fields=FIELDS, lsn=1200),
        debezium("c", None, item(2, 7), fields=FIELDS, lsn=1100),
        debezium("d", item(4, 1), None, fields=FIELDS, lsn=1300),
        debezium("c", None, item(4, 1), fields=FIELDS, lsn=99),
    ]
    synced(spark, warehouse, events)
    assert quantities(warehouse) == {1: 1, 3: 7}
    # In a later batch the old row of a changed key is in the table.
    synced(spark, warehouse, [debezium("u", {"id": 3}, item(30, 8), fields=FIELDS, lsn=2000)])
    assert quantities(warehouse) == {1: 1, 30: 8}


def test_kafka_decides_by_offset_and_a_key_is_enough_for_a_delete(spark: SparkSession, warehouse: str) -> None:
    events = [
        ({"id": 1}, debezium("c", None, item(1, 1), fields=FIELDS, lsn=9), 0, 10),
        ({"id": 1}, debezium("u", None, item(1, 2), fields=FIELDS, lsn=9), 0, 11),
        ({"schema": {}, "payload": {"id": 2}}, debezium("d", None, None, fields=FIELDS), 1, 9),
        ({"id": 2}, debezium("c", None, item(2, 1), fields=FIELDS), 1, 8),
        ({"id": 2}, None, 1, 10),
    ]
    how: dict[str, Any] = {"database": "shop", "metadata": ["topic", "partition", "offset", "timestamp", "op_ts"]}
    sync_cdc(kafka_frame(spark, events), warehouse, **how)
    [found] = rows(warehouse)
    assert (found["id"], found["qty"], found["topic"], found["partition"], found["offset"]) == (1, 2, "srv.item", 0, 11)
    assert found["timestamp"].timestamp() == 1704067200.5
    assert found["op_ts"].timestamp() == 1704067200.0
    assert lakelet.connect(warehouse).table("shop.item").schema.primary_keys == ("id",)


def test_a_sequence_field_decides_across_batches(spark: SparkSession, warehouse: str) -> None:
    how: dict[str, Any] = {"metadata": ["source_position"], "table_options": {"sequence.field": "source_position"}}
    synced(spark, warehouse, [debezium("c", None, item(1, 1), fields=FIELDS, lsn=10)], **how)
    synced(spark, warehouse, [debezium("u", None, item(1, 3), fields=FIELDS, lsn=30)], **how)
    late: list[object] = [
        debezium("u", None, item(1, 2), fields=FIELDS, lsn=20),
        debezium("d", item(1, 1), None, fields=FIELDS, lsn=15),
    ]
    synced(spark, warehouse, late, **how)
    assert quantities(warehouse) == {1: 3}
    synced(spark, warehouse, [debezium("d", item(1, 3), None, fields=FIELDS, lsn=40), *late], **how)
    assert quantities(warehouse) == {}


def test_a_truncate_that_is_allowed_empties_the_table_at_its_place(spark: SparkSession, warehouse: str) -> None:
    synced(spark, warehouse, [debezium("c", None, item(1, 1), fields=FIELDS, lsn=1)])
    events: list[object] = [
        debezium("c", None, item(2, 1), fields=FIELDS, lsn=2),
        debezium("t", None, None, lsn=3),
        debezium("c", None, item(3, 1), fields=FIELDS, lsn=4),
    ]
    synced(spark, warehouse, events, truncate="apply")
    assert quantities(warehouse) == {3: 1}
    synced(spark, warehouse, [debezium("t", None, None, lsn=5)], truncate="apply")
    assert quantities(warehouse) == {}


def test_poison_is_told_apart(spark: SparkSession, warehouse: str) -> None:
    """One bad event of each kind beside a good one, which is applied."""
    events: list[object] = [
        debezium("c", None, item(1, 1), fields=FIELDS),
        debezium("c", None, {"id": None, "qty": 1}, fields=FIELDS),
        debezium("c", None, {"qty": 1}, fields=FIELDS),
        debezium("c", None, {"id": 2, "qty": 2**40}, fields=FIELDS),
        debezium("c", None, {"id": 2, "qty": "many"}, fields=FIELDS),
        debezium("c", None, {"id": 2, "qty": 1.5}, fields=FIELDS),
        debezium("c", None, {"id": 2, "qty": "__debezium_unavailable_value"}, fields=FIELDS),
        debezium("x", None, item(3, 1), fields=FIELDS),
        debezium("c", None, None, fields=FIELDS),
        '{"op": "c", "after": {"id": ',
        "no JSON",
        '["op"]',
        "{}",
    ]
    counts = synced(spark, warehouse, events)
    assert quantities(warehouse) == {1: 1}
    assert counts.quarantined == 12
    found = reasons(warehouse)
    assert len(found) == 12
    told = "\n".join(found)
    for part in (
        "key column id is missing",
        "qty: 1099511627776 is no INT",
        "qty: many is no INT",
        "qty: 1.5 is no INT",
    ):
        assert part in told
    for part in ("REPLICA IDENTITY FULL", "unknown op x", "op c without a row", "no JSON object of Debezium's"):
        assert part in told


def test_refused_arguments(spark: SparkSession, warehouse: str) -> None:
    for how, part in (
        ({"format": "csv"}, "format"),
        ({"database": "shop"}, "one of them"),
        ({"type_mapping": ["to-integer"]}, "to-integer"),
        ({"metadata": ["moon"]}, "moon"),
        ({"computed": {"y": "sqrt(id)"}}, "sqrt"),
        ({"including": "("}, "regular expression"),
        ({"colour": "red"}, "colour"),
        ({"commit_user": "u"}, "batch_id"),
    ):
        with pytest.raises(InvalidError, match=part):
            synced(spark, warehouse, [], **how)
    lake = lakelet.connect(warehouse)
    lake.create_database("shop", if_not_exists=True)
    lake.create_table("shop.log", [("id", "INT")])
    with pytest.raises(InvalidError, match="no primary key"):
        synced(spark, warehouse, [debezium("c", None, item(1, 1), fields=FIELDS)], table="shop.log")
    with pytest.raises(InvalidError, match="column value"):
        sync_cdc(spark.range(1), warehouse, table="shop.item")
