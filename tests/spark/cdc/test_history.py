"""Random histories of a source, in random order, with repeats, schema changes, events that somebody spoilt and drivers that are
lost: the table equals the source in the end, and what was spoilt is in the quarantine, once."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import lakelet
from lakelet.spark.cdc import batch as cdc_batch
from tests.spark.cdc.cdc_frames import rows, synced
from tests.spark.cdc.sample_events import text
from tests.spark.cdc.source_history import SourceHistory
from tests.spark.cdc.test_stream import Lost, failing_at
from tests.tiers.examples import examples

HOW: dict[str, Any] = {"metadata": ["source_position"], "table_options": {"sequence.field": "source_position"}}
QUARANTINE = "shop.cdc_quarantine"


def spoilt(chosen: random.Random, event: dict[str, Any]) -> str:
    """The event with something in it that cannot be applied."""
    event = copy.deepcopy(event)
    payload = event.get("payload")
    row = event["data"][0] if payload is None else payload["after"] or payload["before"]
    match chosen.randrange(5):
        case 0:
            whole = text(event)
            return whole[: chosen.randrange(1, len(whole) - 8)]
        case 1:
            (event if payload is None else payload)["type" if payload is None else "op"] = "EXPLODE"
        case 2:
            row["id"] = chosen.choice([None, "seven", "7.5", [7]])
        case 3:
            del row["id"]
        case _:
            return text(event).replace('"id":', '"id":1x,"x":', 1)
    return text(event)


def lost(monkeypatch: pytest.MonkeyPatch, chosen: random.Random, spark: SparkSession, *given: Any, **how: Any) -> None:
    """An attempt of a batch whose driver may be lost before or after one of its commits."""
    with monkeypatch.context() as patched:
        cut = failing_at(chosen.randrange(1, 3), cdc_batch.upsert_rows, after=chosen.random() < 0.5)
        patched.setattr(cdc_batch, "upsert_rows", cut)
        try:
            synced(spark, *given, **how)
        except Lost:
            return


def check(
    spark: SparkSession,
    warehouse: str,
    seed: int,
    envelope: str,
    batches: int,
    changes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Applies a history in batches, out of order and with repeats, and compares; `old` schemas may come late."""
    chosen = random.Random(seed)
    source = SourceHistory(chosen)
    for _ in range(changes):
        source.change(envelope)
    events: list[Any] = [*source.events, *chosen.sample(source.events, len(source.events) // 4)]
    wrong = {spoilt(chosen, one) for one in chosen.sample(source.events, len(source.events) // 8)}
    events += sorted(wrong)
    chosen.shuffle(events)
    size = len(events) // batches + 1
    for number, begin in enumerate(range(0, len(events), size)):
        part = events[begin : begin + size]
        how: dict[str, Any] = {**HOW, "format": envelope, "commit_user": "history", "batch_id": number}
        if chosen.random() < 0.5:
            lost(monkeypatch, chosen, spark, warehouse, part, **how)
        counts = synced(spark, warehouse, part, **how)
        assert counts.quarantined == sum(isinstance(one, str) for one in part)
    found = [{name: row[name] for name in row if name != "source_position"} for row in rows(warehouse)]
    assert sorted(found, key=lambda row: row["id"]) == source.state()
    lake = lakelet.connect(warehouse)
    aside = rows(warehouse, QUARANTINE) if lake.table_exists(QUARANTINE) else []
    assert sorted(row["raw"].decode() for row in aside) == sorted(wrong)


@pytest.mark.parametrize("envelope", ["debezium", "canal"])
def test_a_history_ends_as_its_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envelope: str
) -> None:
    check(spark, str(tmp_path / "wh"), 19, envelope, 2, 60, monkeypatch)


@pytest.mark.deep
@pytest.mark.parametrize("envelope", ["debezium", "canal"])
def test_a_longer_history_ends_as_its_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envelope: str
) -> None:
    check(spark, str(tmp_path / "wh"), 19, envelope, 2, 200, monkeypatch)


@pytest.mark.deep
@given(st.integers(0, 2**32), st.sampled_from(["debezium", "canal"]), st.integers(1, 3))
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_history_ends_as_its_source(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    envelope: str,
    batches: int,
) -> None:
    check(spark, str(tmp_path_factory.mktemp("wh") / "wh"), seed, envelope, batches, 60, monkeypatch)
