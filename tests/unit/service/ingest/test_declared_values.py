"""Values of declared columns, and those that Arrow alone has: in their column as they were sent, or in `payload_rest`."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.model.types import Atomic, Kind
from lakelet.service.ingest.payload_growth import MisfitError
from lakelet.service.ingest.payload_values import converter_of
from tests.unit.service.served_lake import MORNING, ServedLake

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
MOMENT = datetime(2026, 1, 31, 10, tzinfo=UTC)


def body_of(payload: pa.Array, ids: list[str | None] | None = None, moments: list[Any] | None = None) -> bytes:
    """An Arrow stream of records with these payloads."""
    keys = ids or [f"k{place}" for place in range(len(payload))]
    times = pa.array(moments or [MOMENT] * len(payload), pa.timestamp("us", "UTC"))
    rows = pa.table({"id": pa.array(keys, pa.string()), "timestamp": times, "payload": payload})
    target = io.BytesIO()
    with pa.ipc.new_stream(target, rows.schema) as writer:
        writer.write_table(rows)
    return target.getvalue()


def struct(**columns: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def asked(served: ServedLake, sql: str) -> list[dict[str, Any]]:
    """The rows of a query of the service."""
    answer = served.request("POST", "/v1/query", json={"sql": sql})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = json.loads(answer.json()["result_json"])
    return found


EVERY = {
    "price": pa.array([Decimal("12345678901234567.89"), None], pa.decimal128(20, 2)),
    "day": pa.array([date(1969, 12, 31), None]),
    "at": pa.array([datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "wall": pa.array([datetime(2026, 1, 31, 10, 0, 0, 123456), None], pa.timestamp("us")),
    "clock": pa.array([time(10, 30), None], pa.time32("ms")),
    "raw": pa.array([b"\x00\xff", None]),
    "single": pa.array([0.1, None], pa.float32()),
    "numbers": pa.array([[("a", 1.5)], None], pa.map_(pa.string(), pa.float64())),
}
DECLARED = {
    "payload.price": "DECIMAL(20, 2)",
    "payload.day": "DATE",
    "payload.at": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "payload.wall": "TIMESTAMP(6)",
    "payload.clock": "TIME(3)",
    "payload.raw": "BYTES",
    "payload.single": "FLOAT",
    "payload.numbers": "MAP<STRING, DOUBLE>",
}


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("properties", [{}, {name: one for name, one in DECLARED.items() if name != "payload.numbers"}])
def test_arrow_values_are_stored_as_they_are(tmp_path: Path, properties: dict[str, str], count: int) -> None:
    payload = struct(**{name: one for name, one in EVERY.items() if name != "numbers"}).take([0] * count)
    with ServedLake(tmp_path) as served:
        served.create("t", properties=properties)
        answer = served.request("POST", "/v1/data/batch?table=t", content=body_of(payload), headers=ARROW)
        assert answer.json() == {"success": True, "message": answer.json()["message"], "written": count}
        for flushed in (False, True):
            if flushed:
                served.flush("t")
            (found,) = asked(
                served,
                "SELECT payload.* EXCLUDE (single, raw), payload.raw = '\\x00\\xFF'::BLOB AS same FROM t LIMIT 1",
            )
            assert found == {
                "price": "12345678901234567.89",
                "day": "1969-12-31",
                "at": "2026-01-31T10:00:00.123456Z",
                "wall": "2026-01-31T10:00:00.123456",
                "clock": "10:30:00",
                "same": True,
            }


def test_declared_columns_take_what_arrow_and_json_have(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=DECLARED)
        payload = struct(**EVERY)
        answer = served.request("POST", "/v1/data/batch?table=t", content=body_of(payload), headers=ARROW)
        assert answer.status_code == 200, answer.text
        assert "rest_values" not in answer.json()
        sent = {
            "price": "12345678901234567.89",
            "day": "1969-12-31",
            "at": "2026-01-31T10:00:00.123456Z",
            "wall": "2026-01-31T10:00:00.123456",
            "clock": "10:30:00",
            "raw": base64.b64encode(b"\x00\xff").decode(),
            "single": 0.1,
            "numbers": {"a": 1.5},
        }
        served.write("t", sent, id="json")
        kinds = "typeof(payload.price) AS a, typeof(payload.single) AS b, payload_rest AS rest"
        assert {tuple(row.values()) for row in asked(served, f"SELECT {kinds} FROM t")} == {
            ("DECIMAL(20,2)", "FLOAT", None)
        }
        assert asked(served, "SELECT count(DISTINCT payload) AS n FROM t WHERE payload.day IS NOT NULL") == [{"n": 1}]
        (found,) = served.payloads("t", "json")
        (same,) = served.payloads("t", "k0")
        assert found == same
        assert {**found, "single": 0.1} == sent


@pytest.mark.parametrize(
    "value", [Decimal("123456789012345678901234567890.12345678"), "-999999999999999999999999999999.99999999", 10**29]
)
def test_a_decimal_has_all_its_digits(value: object) -> None:
    assert converter_of(Atomic(Kind.DECIMAL, 38, 8), takes_large=True)(value) == Decimal(str(value))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.TIMESTAMP, "2026-01-31T10:00:00.1234567"),
        (Kind.TIMESTAMP, "2026-01-31T10:00:00,00000000001"),
        (Kind.TIME, "10:00:00.1230009"),
    ],
)
def test_what_is_finer_than_microseconds_does_not_fit(kind: Kind, text: str) -> None:
    convert = converter_of(Atomic(kind, 9), takes_large=True)
    with pytest.raises(MisfitError):
        convert(text)
    assert convert("2026-01-31T10:00:00.123000000"[0 if kind is Kind.TIMESTAMP else 11 :]).microsecond == 123_000


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1.10", "1.10"),
        ("12345678901234567", "12345678901234567.00"),
        ("9007199254740992.0", "9007199254740992.00"),
        ("9999999999999.99", "9999999999999.99"),
        # As doubles these are other decimals.
        ("12345678901234567.89", None),
        ("99999999999999.99", None),
        ('"12345678901234567.89"', "12345678901234567.89"),
        ("1.101", None),
        ("1e300", None),
    ],
)
def test_a_decimal_is_what_was_sent_or_null(tmp_path: Path, text: str, stored: str | None) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"payload.d": "DECIMAL(20, 2)"})
        body = f'{{"table": "t", "id": "a", "timestamp": "{MORNING}", "payload": {{"d": {text}}}}}'
        assert served.request("POST", "/v1/data", content=body.encode()).status_code == 200
        (found,) = asked(served, "SELECT payload.d AS d, payload_rest AS rest FROM t")
        assert found["d"] == stored
        assert (found["rest"] is None) == (stored is not None)


@pytest.mark.parametrize(
    ("number", "fits"), [(0.1, True), (0.5, True), (16777217, False), (1e300, False), (1 / 3, False)]
)
@pytest.mark.parametrize("count", [1, 40])
def test_a_float_that_would_change_goes_to_the_rest(tmp_path: Path, number: float, fits: bool, count: int) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"payload.f": "FLOAT"})
        rows = [{"id": "a", "timestamp": MORNING, "payload": {"f": number}}] * count
        answer = served.request("POST", "/v1/data/batch?table=t", json=rows)
        assert answer.status_code == 200, answer.text
        assert answer.json().get("rest_values", 0) == (0 if fits else count)
        if not fits:
            assert {json.dumps(one) for one in served.payloads("t")} == {json.dumps({"f": number})}


def test_what_fits_no_column_is_kept_as_text(tmp_path: Path) -> None:
    finer = pa.array([1, None], pa.timestamp("ns", "UTC"))
    payload = struct(
        a=pa.array([Decimal("1.10"), None]), b=pa.array([b"x", None]), c=finer, d=pa.array([date(2026, 1, 2), None])
    )
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", dict.fromkeys("abcd", True))
        answer = served.request("POST", "/v1/data/batch?table=t", content=body_of(payload), headers=ARROW)
        assert answer.json()["rest_values"] == 4
        (found,) = served.payloads("t", "k0")
        assert {name: str(one)[:10] for name, one in found.items()} == {
            "a": "1.10",
            "b": "eA==",
            "c": "1970-01-01",
            "d": "2026-01-02",
        }


def test_numbers_that_are_none_come_back_as_words(tmp_path: Path) -> None:
    payload = struct(d=pa.array([float("nan"), float("-inf")]))
    with ServedLake(tmp_path) as served:
        served.create("t")
        assert (
            served.request("POST", "/v1/data/batch?table=t", content=body_of(payload), headers=ARROW).status_code == 200
        )
        assert [served.payloads("t", key) for key in ("k0", "k1")] == [[{"d": "NaN"}], [{"d": "-Infinity"}]]


def test_a_partial_arrow_batch_tells_each_row_that_is_no_record(tmp_path: Path) -> None:
    payload = pa.array([{"a": 1}] * 3 + [None, {"a": 2}], pa.struct([("a", pa.int64())]))
    ids = ["k0", None, "k2", "k3", "x" * 1025]
    body = body_of(payload, ids, [MOMENT, MOMENT, None, MOMENT, MOMENT])
    with ServedLake(tmp_path) as served:
        served.create("t")
        answer = served.request("POST", "/v1/data/batch?table=t", content=body, headers=ARROW)
        assert answer.status_code == 400
        assert "record 1: id" in answer.json()["detail"]
        answer = served.request("POST", "/v1/data/batch?table=t&partial=true", content=body, headers=ARROW)
        assert answer.json()["written"] == 1
        assert [one["place"] for one in answer.json()["refused"]] == [1, 2, 3, 4]
        assert asked(served, "SELECT id FROM t") == [{"id": "k0"}]


def test_a_declared_bigint_stays_one(tmp_path: Path) -> None:
    declared = {"payload.n": "BIGINT", "payload.o": "ROW<x ARRAY<BIGINT>>", "payload.s": "STRING"}
    with ServedLake(tmp_path) as served:
        served.create("t", properties=declared)
        served.write("t", {"n": 1, "o": {"x": [1]}, "free": 1}, id="a")
        assert served.write("t", {"n": 1.5, "o": {"x": [1.5]}, "free": 1.5}, id="b")["rest_values"] == 2
        kinds = asked(served, "SELECT typeof(payload.n) AS n, typeof(payload.o) AS o, typeof(payload.free) AS f FROM t")
        assert set(kinds[0].values()) == {"BIGINT", "STRUCT(x BIGINT[])", "DOUBLE"}
        assert served.payloads("t", "b") == [{"n": 1.5, "o": {"x": [1.5]}, "free": 1.5}]
        served.write("t", {"n": 2**53 + 1}, id="c")
        assert asked(served, "SELECT payload.n AS n FROM t WHERE id = 'c'") == [{"n": 2**53 + 1}]
