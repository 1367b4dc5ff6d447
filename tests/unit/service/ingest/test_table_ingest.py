"""Records end up as rows of a native table: every value is found again, in its column or in `payload_rest`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.errors import InvalidError, OverloadedError, TooLargeError
from lakelet.service.ingest.payload_schema import grow_payload
from lakelet.service.ingest.record_columns import RecordColumns
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.values import Record
from tests.unit.service.served_lake import MORNING, ServedLake

HARD = [
    {"name": "张三", "age": 25, "city": "北京"},
    {"age": 25.0, "tags": ["a", None, "b"], "n": {"x": 1}},
    {"age": 25.5, "n": {"x": 1.5, "y": [{"z": 1}]}},
    {"age": "old", "Age": 3, "big": 2**60, "huge": 2**70},
    {"big": 0.5, "age": 2**60, "empty": [], "nothing": {}},
    {"n": {"x": "text"}, "tags": [1]},
    {"带 点.的": True, "": 1, "s": "\u2028'\"\\"},
    {},
]


def same(found: Any, sent: Any) -> bool:
    """Whether two values are the same JSON; a number is its value."""
    if isinstance(sent, dict):
        there = {name: value for name, value in sent.items() if value is not None}
        return isinstance(found, dict) and found.keys() == there.keys() and all(same(found[n], there[n]) for n in there)
    if isinstance(sent, list):
        return isinstance(found, list) and len(found) == len(sent) and all(map(same, found, sent))
    return type(found) in (type(sent), float, int) and bool(found == sent)


@pytest.mark.parametrize(
    "properties", [{}, {"primary_key": "id"}, {"primary_key": "id, timestamp"}, {"partitioning": "id-day"}]
)
def test_every_value_is_found_again_before_and_after_a_flush(tmp_path: Path, properties: dict[str, str]) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=properties)
        for number, payload in enumerate(HARD):
            served.write("t", payload, id=f"k{number}")
            if number == 3:
                served.flush("t")
        for number, payload in enumerate(HARD):
            (found,) = served.payloads("t", f"k{number}")
            assert same(found, payload), (found, payload)
        served.flush("t")
        for number, payload in enumerate(HARD):
            (found,) = served.payloads("t", f"k{number}")
            assert same(found, payload), (found, payload)
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": len(HARD)}]


def test_what_fits_no_field_is_counted_and_null_in_the_payload(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"age": 1}, id="a")
        answer = served.write("t", {"age": "old", "x": 1}, id="b")
        assert answer["rest_values"] == 1
        served.flush("t")
        rows = served.rows("SELECT id, payload.age AS age, payload_rest FROM t ORDER BY id")
        assert [(row["id"], row["age"]) for row in rows] == [("a", 1), ("b", None)]
        assert json.loads(rows[1]["payload_rest"]) == {"age": "old"}


def test_a_batch_alters_the_table_once(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        before = len(served.lake.table("default.t").schemas())
        records = [
            {
                "id": f"k{number}",
                "timestamp": "2026-01-31T10:00:00Z",
                "payload": {f"f{number}": number, "x": number / 2},
            }
            for number in range(20)
        ]
        answer = served.request("POST", "/v1/data/batch?table=t", json=records)
        assert answer.json()["written"] == 20
        assert len(served.lake.table("default.t").schemas()) == before + 1


def test_integers_become_doubles_where_no_integer_would_change(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"a": 1, "b": 2**53 + 1, "n": [1]})
        served.flush("t")
        served.write("t", {"a": 0.5, "b": 0.5, "n": [0.5]})
        assert served.payload_type("t") == "ROW<`a` DOUBLE, `b` BIGINT, `n` ARRAY<DOUBLE>>"
        assert served.payloads("t") == [{"a": 1.0, "b": 2**53 + 1, "n": [1.0]}, {"a": 0.5, "b": 0.5, "n": [0.5]}]
        served.flush("t")
        assert served.rows("SELECT sum(payload.a) AS a, max(payload.b) AS b FROM t") == [{"a": 1.5, "b": 2**53 + 1}]
        assert served.rows("SELECT count(*) AS n FROM t WHERE payload.a > 0.7") == [{"n": 1}]


def test_that_a_field_stays_exact_is_known_after_a_restart(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"b": 2**53 + 1})
    with ServedLake(tmp_path) as served:
        served.write("t", {"b": 0.5})
        assert served.payload_type("t") == "ROW<`b` BIGINT>"
        assert served.payloads("t")[0] == {"b": 2**53 + 1}


def test_values_that_another_process_has_made_room_for_meanwhile_go_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the columns and the change of the schema another process may make the very same change."""
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"half": 0})
        convert = RecordColumns.convert
        other = OpenTable("t", lakelet.connect(served.settings.warehouse).table("default.t"), tmp_path / "other")

        def overtaken(self: RecordColumns, records: Any) -> Any:
            found = convert(self, records)
            if found[1] and self.schema.id == other.schema.id:
                assert grow_payload(other, found[1], self.schema)
            return found

        monkeypatch.setattr(RecordColumns, "convert", overtaken)
        assert not served.write("t", {"half": 0.5}, id="b").get("rest_values")
        assert served.payloads("t", "b") == [{"half": 0.5}]
        answer = served.request(
            "POST",
            "/v1/data/batch?table=t&partial=true",
            json=[{"id": "c", "timestamp": MORNING, "payload": {"more": 1}}],
        )
        assert (answer.json()["written"], answer.json().get("rest_values")) == (1, None)


def test_another_process_that_alters_the_table_meanwhile_is_followed(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"a": 1})
        other = lakelet.connect(served.settings.warehouse).table("default.t")
        other.add_column("payload.b", "STRING")
        assert served.write("t", {"b": "x", "c": 1}).get("rest_values") is None
        assert served.payload_type("t") == "ROW<`a` BIGINT, `b` STRING, `c` BIGINT>"
        other.drop_column("payload.a")
        served.write("t", {"a": "now a text"}, id="b")
        assert served.payloads("t", "b") == [{"a": "now a text"}]


def test_many_requests_share_syncs_and_one_bad_request_harms_no_other(tmp_path: Path) -> None:
    async def write_all(served: ServedLake) -> list[object]:
        lane = served.service.ingest.lane("t")
        long = "x" * 300
        units = [[Record(f"k{number}" if number != 7 else long, 0, {"n": number})] for number in range(200)]
        return await asyncio.gather(*(lane.submit(unit) for unit in units), return_exceptions=True)

    with ServedLake(tmp_path) as served:
        # An id of 300 bytes is no name of a partition's folder: found out when rows are put.
        served.create("t", properties={"partitioning": "id-day"})
        served.write("t", {"n": 0}, id="first")
        outcomes = served.run(write_all(served))
        assert [place for place, outcome in enumerate(outcomes) if outcome != 0] == [7]
        assert isinstance(outcomes[7], lakelet.InvalidError)
        assert served.service.tables.open("t").buffered_records == 200


def test_more_than_may_wait_is_refused_and_not_written(tmp_path: Path) -> None:
    async def overload(served: ServedLake) -> list[object]:
        lane = served.service.ingest.lane("t")
        # The lane's thread waits for its turn: requests pile up behind it.
        with lane.ingest.turn:
            tasks = [asyncio.ensure_future(lane.submit([Record(f"k{number}", 0, {})])) for number in range(10)]
            await asyncio.sleep(0)
            refused = [task for task in tasks if task.done()]
            assert len(refused) == 5
        return await asyncio.gather(*tasks, return_exceptions=True)

    with ServedLake(tmp_path, most_waiting_records=5) as served:
        served.create("t")
        outcomes = served.run(overload(served))
        assert [isinstance(one, OverloadedError) for one in outcomes] == [False] * 5 + [True] * 5
        assert served.service.tables.open("t").buffered_records == 5


def test_buffer_size_flushes(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", buffer_size=10, flush_interval_seconds=3600)
        for number in range(10):
            served.write("t", {"n": number}, id=f"k{number}")

        async def wait() -> None:
            while not served.service.ingest.flushes:
                await asyncio.sleep(0.01)

        served.run(wait())
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": 10}]


def test_an_old_record_is_not_removed_by_the_commit_that_writes_it(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", retention_days=30)
        for number, moment in enumerate(("2023-10-27T10:00:00Z", "2024-01-01T00:00:00Z")):
            served.write("t", {"a": number}, id=f"k{number}", timestamp=moment)
            served.flush("t")
        assert served.rows("SELECT count(*) AS n FROM t WHERE timestamp >= '2023-10-01'") == [{"n": 2}]


LARGE = {"id": "large", "timestamp": MORNING, "payload": {"x": "y" * 3000}}


@pytest.mark.parametrize("count", [1, 3, 40], ids=["one", "few", "many"])
def test_more_than_a_memtable_holds_is_too_large_however_few_records_it_is(tmp_path: Path, count: int) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"memtable.size": "2 kb"})
        records = [{**LARGE, "payload": {"x": "y" * (3000 if count == 1 else 1000)}} for _ in range(count)]
        requests = [("/v1/data/batch?table=t", records)]
        if count == 1:
            requests.append(("/v1/data", {"table": "t", **LARGE}))
        for path, body in requests:
            answer = served.request("POST", path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "too-large"), answer.text
        assert served.records("t", "large") == []
        assert served.write("t", {"x": 1})["written"] == 1


def test_a_partial_batch_reports_each_record_that_cannot_be_written(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"memtable.size": "2 kb"})
        good = {"timestamp": MORNING, "payload": {"n": 1, "new": "x"}}
        records = [{"id": "a", **good}, {"id": ""}, LARGE, 7, {"id": "b", **good}, LARGE]
        answer = served.request("POST", "/v1/data/batch?table=t&partial=true", json=records)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["written"], [one["place"] for one in answer.json()["refused"]]) == (2, [1, 2, 3, 5])
        assert "more than a memtable holds" in answer.json()["refused"][1]["reason"]
        whole = served.request("POST", "/v1/data/batch?table=t", json=[{"id": "c", **good}, LARGE])
        assert whole.status_code == 413
        served.flush("t")
        assert served.rows("SELECT id FROM t ORDER BY id") == [{"id": "a"}, {"id": "b"}]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_partial_batch_for_an_attached_table_reports_what_does_not_fit(tmp_path: Path, key: str | None) -> None:
    with ServedLake(tmp_path) as served:
        columns = [("id", "STRING NOT NULL"), ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("n", "INT")]
        served.lake.create_table("default.own", columns)
        served.create("t", properties={"attach": "own"})
        payloads: list[Any] = [{"n": 1}, {"n": "text"}, {"other": 2}, {"n": 3}]
        records = [
            {"id": f"k{place}", "timestamp": MORNING, "payload": payload} for place, payload in enumerate(payloads)
        ]
        records.insert(1, {"id": "no record"})
        headers = {} if key is None else {"Idempotency-Key": key}
        answers = [
            served.request("POST", "/v1/data/batch?table=t&partial=true", json=records, headers=headers).json()
            for _ in range(1 if key is None else 2)
        ]
        for answer in answers:
            assert (answer["written"], [one["place"] for one in answer["refused"]]) == (2, [1, 2, 3])
            assert "payload.n does not fit" in answer["refused"][1]["reason"]
        assert answers[0]["refused"] == answers[-1]["refused"]
        served.flush("t")
        assert served.rows("SELECT id FROM own ORDER BY id") == [{"id": "k0"}, {"id": "k3"}]


@pytest.mark.parametrize(
    ("properties", "broken"),
    [
        # A value that fits no field and is no JSON, which is found when columns are made.
        ({}, {"id": "b", "payload": {"age": "\ud800"}}),
        # More than a memtable holds.
        ({"memtable.size": "64 kb"}, {"id": "b", "payload": {"text": "x" * 100_000}}),
        # A folder's name.
        ({"partitioning": "id-day"}, {"id": "é" * 200, "payload": {"x": 1}}),
    ],
)
@pytest.mark.parametrize("count", [1, 300])
def test_a_refused_batch_makes_the_table_grow_by_nothing(
    tmp_path: Path, properties: dict[str, str], broken: dict[str, Any], count: int
) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=properties)
        served.write("t", {"age": 1}, id="a")
        table = served.service.tables.open("t").table
        before = len(table.schemas())
        fine = [Record(f"k{number}", 0, {f"new{number % 9}": number}) for number in range(count)]
        records = [*fine, Record(broken["id"], 0, broken["payload"])]
        with pytest.raises((InvalidError, TooLargeError)):
            served.run(served.service.ingest.lane("t").submit(records))
        assert len(table.schemas()) == before
        # The table takes the rest as if nothing had been.
        assert served.run(served.service.ingest.lane("t").submit(fine)) == 0
        served.flush("t")
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": 1 + count}]


def test_a_partial_batch_grows_for_the_records_that_are_written(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"partitioning": "id-day"})
        records = [
            Record("a", 0, {"x": 1}),
            Record("é" * 200, 0, {"wrong": 1}),
            Record("b", 0, {"x": 1.5}),
        ]
        unit = WriteUnit(records, partial=True)
        result = served.run(served.service.ingest.lane("t").submit_unit(unit))
        assert (result.written, [one.place for one in result.refused]) == (2, [1])
        served.flush("t")
        assert [row["x"] for row in served.rows("SELECT payload.x AS x FROM t ORDER BY id")] == [1.0, 1.5]
        assert "wrong" not in str(served.service.tables.open("t").schema.fields)
