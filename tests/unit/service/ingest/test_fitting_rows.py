"""Batches that are parsed by columns give the rows that single records give, or are left to them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.service.ingest.fitting_rows import fitting_rows, parsed_lines
from lakelet.service.ingest.record_columns import RecordColumns
from lakelet.service.values import Record
from tests.unit.service.served_lake import ServedLake

KNOWN = {"i": 1, "d": 0.5, "s": "x", "b": True, "l": [1], "n": {"x": 1, "y": "z"}, "big": 2**60, "dl": [0.5]}
FIRST = b'{"id":"first","timestamp":"2026-01-31T10:00:00Z","payload":' + json.dumps(KNOWN).encode() + b"}"


def line(payload: str, timestamp: str = '"2026-01-31T10:00:00Z"', id: str = '"k"') -> str:
    return f'{{"id":{id},"timestamp":{timestamp},"payload":{payload}}}'


FITTING = [
    line('{"i":7,"d":1.5,"s":"\\u00e9\\ud83d\\ude00","b":false,"l":[1,null],"n":{"x":2},"big":1152921504606846977}'),
    line("{}"),
    line('{"i":null,"n":null,"n2":null}'.replace(',"n2":null', "")),
    line('{"d":1}'),
    line('{"n":{"y":null}}'),
    line('{"i":1}', '"2026-01-31T10:00:00.123456+05:30"'),
    line('{"i":1}', '"0001-01-01T00:00:00Z"'),
    line('{"i":-9007199254740992}'),
]
LEFT = [
    line('{"i":25.0}'),
    line('{"i":1.5}'),
    line('{"i":"text"}'),
    line('{"i":9007199254740993}'),
    line('{"d":9007199254740993}'),
    line('{"d":1e300}'),
    line('{"dl":[9007199254740993]}'),
    line('{"l":[9007199254740993]}'),
    line('{"new":1}'),
    line('{"n":{"new":1}}'),
    line('{"I":1}'),
    line('{"i":1,"i":2}'),
    line('{"big":18446744073709551616}'),
    line('{"s":1}'),
    line('{"b":1}'),
    line('{"i":1}', '"2026-01-31t10:00:00z"'),
    line('{"i":1}', '"2026-01-31T10:00:00.1234560Z"'),
]
WRONG = [
    line("null"),
    line("{}", "null"),
    line("{}", '"2026-01-31"'),
    line("{}", '"2026-01-31T10:00Z"'),
    line("{}", '"2026-01-31T10:00:00"'),
    line("{}", '"2026-02-30T10:00:00Z"'),
    line("{}", '"0000-01-01T00:00:00Z"'),
    line("{}", '"2026-01-31T10:00:00.1234567Z"'),
    line("{}", id='""'),
    line("{}", id="7"),
    line("{}", id=json.dumps("x" * 1025)),
    '{"id":"k","timestamp":"2026-01-31T10:00:00Z"}',
    '{"id":"k","timestamp":"2026-01-31T10:00:00Z","payload":{},"more":1}',
    "7",
    "{",
    line('{"s":"\\ud800"}'),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    with ServedLake(tmp_path_factory.mktemp("shared")) as served:
        yield served


def post(served: ServedLake, body: bytes, table: str = "t") -> Any:
    headers = {"content-type": "application/x-ndjson"}
    return served.request("POST", f"/v1/data/batch?table={table}", content=body, headers=headers)


def is_fitting(served: ServedLake, text: str, table: str) -> bool:
    schema = served.service.tables.open(table).schema
    found = parsed_lines(text.encode(), schema)
    return found is not None and fitting_rows(found, RecordColumns(schema)) is not None


@pytest.mark.parametrize("number", range(len(FITTING + LEFT + WRONG)))
def test_lines_give_the_rows_that_single_records_give(shared: ServedLake, number: int) -> None:
    text = (FITTING + LEFT + WRONG)[number]
    for table in (f"lines{number}", f"alone{number}"):
        shared.create(table)
        assert post(shared, FIRST, table).status_code == 200
    assert is_fitting(shared, text, f"lines{number}") is (text in FITTING)
    try:
        body = json.dumps({"table": f"alone{number}", **json.loads(text)}).encode()
    except (ValueError, TypeError):
        body = b"7"
    alone = shared.request("POST", "/v1/data", content=body)
    lines = post(shared, text.encode(), f"lines{number}")
    assert lines.status_code == alone.status_code == (400 if text in WRONG else 200)
    assert shared.records(f"lines{number}", "k") == shared.records(f"alone{number}", "k")


def test_a_line_is_one_object(shared: ServedLake) -> None:
    shared.create("objects")
    assert post(shared, FIRST, "objects").status_code == 200
    one, two = line('{"i":1}', id='"one"'), line('{"n":{"x":2}}', id='"two"')
    for body in (
        one + two,
        one + two + "\n" + one.replace(",", ",\n", 1),
        f"{one} {two}\n" + two.replace("}}}", "}\n}}"),
        f"{one}{two}\n" + one.replace("one", "}\n{"),
        f"[{one}]",
        f"{one},\n{two}",
        f"{one}\n1",
        f"{one}\n\n{one}{two}\n \n",
    ):
        answer = post(shared, body.encode(), "objects")
        assert (answer.status_code, "none of the batch was written" in answer.text) == (400, True), body
    assert shared.records("objects", "one") == shared.records("objects", "two") == []
    for body in (f"{one}\n{two}", f"\n\r\n {one} \r\n\t\n{two}\n\n", f"{one}\n{two}\n"):
        assert is_fitting(shared, body, "objects"), body
        assert post(shared, body.encode(), "objects").json()["written"] == 2


def test_arrow_rows_that_fit_are_not_looked_at_one_by_one(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        assert post(served, FIRST).status_code == 200
        schema = served.service.tables.open("t").schema
        columns = RecordColumns(schema)
        payload = pa.array([{"i": 3, "s": "x"}, {"i": None, "s": None}, {"i": 4, "s": "y"}])
        moments = pa.array([0, -1, 86_400_000_000 * 2], pa.timestamp("us", "Asia/Tokyo"))
        rows = pa.table({"payload": payload, "id": pa.array(["a", "b", "c"], pa.large_string()), "timestamp": moments})
        found = fitting_rows(rows.slice(1), columns)
        assert found is not None
        assert [str(day) for day in found.column("dt").to_pylist()] == ["1969-12-31", "1970-01-03"]
        assert found.column("payload").to_pylist()[1]["i"] == 4
        for wrong in (
            rows.set_column(1, "id", pa.array(["a", None, "c"])),
            rows.set_column(2, "timestamp", pa.array([0, 1, 2], pa.timestamp("us"))),
            rows.set_column(2, "timestamp", pa.array([0, 1, 2], pa.timestamp("ns", "UTC"))),
            rows.set_column(2, "timestamp", pa.array([0, None, 2], pa.timestamp("us", "UTC"))),
            rows.set_column(0, "payload", pa.array([{"i": 2**60}] * 3)),
            rows.set_column(0, "payload", pa.array([{"i": 0.5}] * 3)),
            rows.set_column(0, "payload", pa.array([{"i": 1}, None, {"i": 1}])),
            rows.append_column("more", payload),
            rows.slice(0, 0),
        ):
            assert fitting_rows(wrong, columns) is None


def test_an_arrow_batch_beside_a_wrong_request_is_written_once(tmp_path: Path) -> None:
    async def both(served: ServedLake) -> list[object]:
        lane = served.service.ingest.lane("t")
        rows = pa.table(
            {"id": ["a"], "timestamp": pa.array([0], pa.timestamp("us", "UTC")), "payload": pa.array([{"i": 3}])}
        )
        units = [lane.submit([Record("first", 0, {})]), lane.submit(rows), lane.submit([Record("x" * 300, 0, {})])]
        return await asyncio.gather(*units, lane.submit([Record("b", 0, {})]), return_exceptions=True)

    with ServedLake(tmp_path) as served:
        served.create("t", properties={"partitioning": "id-day"})
        assert post(served, FIRST).status_code == 200
        outcomes = served.run(both(served))
        assert [isinstance(one, Exception) for one in outcomes] == [False, False, True, False]
        assert [len(served.records("t", id)) for id in ("a", "b", "first")] == [1, 1, 2]
