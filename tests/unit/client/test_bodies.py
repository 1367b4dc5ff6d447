"""Records, Arrow data and frames become batches that hold every row once, in order."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.client import Record
from lakelet.client import bodies as bodies_module
from lakelet.client.bodies import ARROW, NDJSON, batches_of, json_body, timestamp_text
from lakelet.errors import InvalidError

MORNING = datetime(2026, 1, 31, 10, tzinfo=UTC)


def rows(count: int, **payload: Any) -> list[dict[str, Any]]:
    return [{"id": str(place), "timestamp": MORNING, "payload": payload} for place in range(count)]


def lines(body: bytes) -> list[Any]:
    return [json.loads(line) for line in body.split(b"\n")]


def table_of(body: bytes) -> pa.Table:
    return pa.ipc.open_stream(body).read_all()


@pytest.mark.parametrize("batch_rows", [1, 3, 10, 11])
def test_records_are_cut_by_rows(batch_rows: int) -> None:
    found = list(batches_of(rows(10), batch_rows))
    assert [one.media_type for one in found] == [NDJSON] * len(found)
    assert max(one.records for one in found) <= batch_rows
    assert [row["id"] for one in found for row in lines(one.body)] == [str(place) for place in range(10)]
    assert sum(one.records for one in found) == 10


def test_records_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_module, "_BATCH_BYTES", 1000)
    found = list(batches_of(rows(20, text="x" * 300), 10_000))
    assert all(len(one.body) <= 1000 for one in found)
    assert sum(one.records for one in found) == 20
    # One that is larger alone is sent alone: the service says what it takes.
    assert [one.records for one in batches_of(rows(2, text="x" * 3000), 10_000)] == [1, 1]


def test_rows_of_a_generator_are_read_batch_by_batch() -> None:
    read: list[int] = []

    def many() -> Any:
        for place in range(100):
            read.append(place)
            yield {"id": str(place), "timestamp": MORNING, "payload": {}}

    next(batches_of(many(), 10))
    assert len(read) <= 11


def test_nothing_to_write() -> None:
    assert list(batches_of([], 10)) == []
    assert (
        list(batches_of(pa.table({"id": pa.array([], pa.string()), "timestamp": pa.array([], pa.int64())}), 10)) == []
    )


def test_records_that_were_read_can_be_written() -> None:
    (found,) = batches_of([Record("a", MORNING, {"x": 1})], 10)
    assert lines(found.body) == [{"id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {"x": 1}}]


def test_values_that_json_has() -> None:
    payload = {"big": 2**70, "nested": {"ü/%": [1, None, True]}, "day": date(2026, 1, 2), "at": MORNING, "nl": "a\nb"}
    (found,) = batches_of(rows(1, **payload), 10)
    assert found.body.count(b"\n") == 0
    assert lines(found.body)[0]["payload"] == {**payload, "day": "2026-01-02", "at": "2026-01-31T10:00:00Z"}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"x", {1, 2}, "\ud800", object(), datetime(2026, 1, 1)])
def test_values_that_json_has_not(value: object) -> None:
    with pytest.raises(InvalidError, match="record 0"):
        list(batches_of(rows(1, x=value), 10))


def test_deep_values_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidError):
        json_body(deep)


@pytest.mark.parametrize("row", [{}, {"id": "a"}, 7, None, "text", {"id": "a", "timestamp": MORNING}])
def test_rows_that_are_none(row: object) -> None:
    with pytest.raises(InvalidError, match="record 1"):
        list(batches_of([*rows(1), row], 10))


@pytest.mark.parametrize("given", [7, None, "text", b"bytes", {"id": "a"}])
def test_what_is_no_rows(given: object) -> None:
    with pytest.raises(InvalidError, match="rows"):
        list(batches_of(given, 10))
    with pytest.raises(InvalidError, match="batch_rows"):
        list(batches_of([], 0))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (MORNING, "2026-01-31T10:00:00Z"),
        (datetime(2026, 1, 31, 6, 30, 0, 1, timezone(-timedelta(hours=3, minutes=30))), "2026-01-31T10:00:00.000001Z"),
        (pd.Timestamp("2026-01-31T10:00:00.5", tz="UTC"), "2026-01-31T10:00:00.500000Z"),
        ("anything", "anything"),
    ],
)
def test_points_in_time(moment: object, text: str) -> None:
    assert timestamp_text(moment) == text


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), pd.Timestamp("2026-01-01T00:00:00.000000001", tz="UTC")])
def test_points_in_time_that_are_none(moment: datetime) -> None:
    with pytest.raises(InvalidError, match="timestamp"):
        timestamp_text(moment)


FLAT = pa.table(
    {
        "id": ["a", "b", "c"],
        "name": ["x", None, "ü"],
        "timestamp": pa.array([MORNING] * 3, pa.timestamp("us", "UTC")),
        "n": pa.array([2**60 + 1, None, 3], pa.int64()),
    }
)
EXPECTED = [{"name": "x", "n": 2**60 + 1}, {"name": None, "n": None}, {"name": "ü", "n": 3}]
FORMS = {
    "table": FLAT,
    "chunks": pa.concat_tables([FLAT.slice(0, 1), FLAT.slice(1)]),
    "batch": FLAT.to_batches()[0],
    "reader": FLAT.to_reader(1),
    "polars": pl.DataFrame(FLAT),
    "pandas": FLAT.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    "pandas with an index": FLAT.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get).set_axis([7, 8, 9]),
}


@pytest.mark.parametrize("form", FORMS)
def test_frames_become_payloads(form: str) -> None:
    given = FLAT.to_reader(1) if form == "reader" else FORMS[form]
    found = list(batches_of(given, 2))
    assert {one.media_type for one in found} == {ARROW}
    assert all(one.records <= 2 for one in found)
    sent = pa.concat_tables([table_of(one.body) for one in found])
    assert sent.column_names == ["id", "timestamp", "payload"]
    assert sent.column("id").to_pylist() == ["a", "b", "c"]
    assert sent.column("timestamp").to_pylist() == [MORNING] * 3
    assert sent.column("payload").to_pylist() == EXPECTED


def test_a_payload_stays_as_it_is() -> None:
    payload = pa.array([{"a": {"b": [1]}}], pa.struct([("a", pa.struct([("b", pa.list_(pa.int8()))]))]))
    given = pa.table({"payload": payload, "id": ["x"], "timestamp": pa.array([MORNING], pa.timestamp("ms", "UTC"))})
    (found,) = batches_of(given, 10)
    assert table_of(found.body).equals(given)


def test_a_frame_without_further_columns_has_an_empty_payload() -> None:
    (found,) = batches_of(FLAT.select(["id", "timestamp"]), 10)
    assert table_of(found.body).column("payload").to_pylist() == [{}, {}, {}]


def test_arrow_is_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_module, "_BATCH_BYTES", 1 << 16)
    given = pa.table(
        {"id": [str(n) for n in range(1000)], "timestamp": pa.array([0] * 1000, pa.timestamp("us", "UTC")),
         "x": ["y" * 1000] * 1000}
    )  # fmt: skip
    found = list(batches_of(given, 10_000))
    assert len(found) > 10
    assert sum(one.records for one in found) == 1000
    assert max(len(one.body) for one in found) < 2 << 16


@pytest.mark.parametrize(
    "names", [["id", "x"], ["timestamp"], ["id", "id", "timestamp"], ["id", "timestamp", "x", "x"]]
)
def test_columns_that_are_missing_or_double(names: list[str]) -> None:
    with pytest.raises(InvalidError, match="columns"):
        list(batches_of(pa.table([pa.array([1])] * len(names), names=names), 10))
