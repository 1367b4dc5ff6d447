"""Random histories of a source, in random order, with repeats and schema changes: the table equals the source in the end."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.cdc.cdc_frames import rows, synced
from tests.spark.cdc.source_history import SourceHistory
from tests.tiers.examples import examples

HOW: dict[str, Any] = {"metadata": ["source_position"], "table_options": {"sequence.field": "source_position"}}


def check(spark: SparkSession, warehouse: str, seed: int, envelope: str, batches: int, changes: int) -> None:
    """Applies a history in batches, out of order and with repeats, and compares; `old` schemas may come late."""
    chosen = random.Random(seed)
    source = SourceHistory(chosen)
    for _ in range(changes):
        source.change(envelope)
    events: list[Any] = [*source.events, *chosen.sample(source.events, len(source.events) // 4)]
    chosen.shuffle(events)
    size = len(events) // batches + 1
    for begin in range(0, len(events), size):
        counts = synced(spark, warehouse, events[begin : begin + size], format=envelope, **HOW)
        assert counts.quarantined == 0
    found = [{name: row[name] for name in row if name != "source_position"} for row in rows(warehouse)]
    assert sorted(found, key=lambda row: row["id"]) == source.state()


@pytest.mark.parametrize("envelope", ["debezium", "canal"])
def test_a_history_ends_as_its_source(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    check(spark, str(tmp_path / "wh"), 19, envelope, 2, 200)


@pytest.mark.deep
@given(st.integers(0, 2**32), st.sampled_from(["debezium", "canal"]), st.integers(1, 3))
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_history_ends_as_its_source(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int, envelope: str, batches: int
) -> None:
    check(spark, str(tmp_path_factory.mktemp("wh") / "wh"), seed, envelope, batches, 60)
