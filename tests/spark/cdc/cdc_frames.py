"""Frames of events, and what is in the tables that they were applied to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lakelet
from lakelet.spark.cdc.batch import CdcCounts
from lakelet.spark.cdc.sync import sync_cdc
from tests.spark.cdc.sample_events import text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, events: list[object]) -> DataFrame:
    """The events in one partition, in their order; text as it is, None a tombstone."""
    texts = [one if one is None or isinstance(one, str) else text(one) for one in events]
    return spark.createDataFrame([(one,) for one in texts], "value string").coalesce(1)


def kafka_frame(spark: SparkSession, events: list[tuple[object, object, int, int]]) -> DataFrame:
    """Events as Kafka's source gives them: key, value, partition, offset."""
    rows = [(_bytes(key), _bytes(value), "srv.item", partition, offset) for key, value, partition, offset in events]
    kinds = "key binary, value binary, topic string, partition int, offset bigint"
    return spark.createDataFrame(rows, kinds).selectExpr("*", "timestamp_millis(1704067200500) AS timestamp")


def _bytes(one: object) -> bytes | None:
    return None if one is None else one if isinstance(one, bytes) else text(one).encode()


def synced(spark: SparkSession, warehouse: str, events: list[object], **how: Any) -> CdcCounts:
    """Applies the events to shop.item unless told otherwise."""
    given: dict[str, Any] = {"table": "shop.item", "primary_key": ["id"], **how}
    counts = sync_cdc(frame(spark, events), warehouse, **given)
    assert isinstance(counts, CdcCounts)
    return counts


def rows(warehouse: str, name: str = "shop.item") -> list[dict[str, Any]]:
    """The rows of a table, by the text of their id."""
    found: list[dict[str, Any]] = lakelet.connect(warehouse).table(name).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row.get("id", row.get("origin"))))


def reasons(warehouse: str, name: str = "shop.cdc_quarantine") -> list[str]:
    """Why events are in quarantine."""
    return sorted(str(row["reason"]) for row in rows(warehouse, name))
