"""Answers that are whole are values; others are errors, never fewer rows."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest

from lakelet.client import Client, RefusedRecord, RepeatPolicy, WriteAnswer
from lakelet.client.bodies import ARROW
from lakelet.errors import ConflictError, InvalidError, UnavailableError
from tests.unit.client.scripted_server import Answer, problem, scripted

ROWS = pa.table({"n": pa.array([2**60 + 1, None, 3], pa.int64()), "text": ["a", "ü", None]})


@pytest.fixture(params=["UTC", "America/St_Johns"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


def stream_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        for batch in rows.to_batches(max_chunksize=1):
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def rows_answer(body: bytes) -> Answer:
    return Answer(body=body, headers={"content-type": ARROW})


def test_rows_in_every_form() -> None:
    with scripted(rows_answer(stream_of(ROWS))) as server, Client(server.address) as client:
        found = client.query("SELECT 1", {"a": 1}, time_zone="UTC", timeout_seconds=5)
    assert server.seen[0].headers["accept"].startswith(ARROW)
    assert found.columns == ("n", "text")
    assert len(found) == 3
    assert found.rows() == ROWS.to_pylist()
    assert found.to_arrow().equals(ROWS)
    frame = found.to_pandas()
    assert frame["n"][0] == 2**60 + 1
    assert frame["n"][1] is pd.NA
    assert found.to_polars().rows() == [(2**60 + 1, "a"), (None, "ü"), (3, None)]


def test_rows_of_columns_with_one_name_are_not_lost() -> None:
    twice = pa.table([[1], [2]], names=["x", "x"])
    with scripted(rows_answer(stream_of(twice))) as server, Client(server.address) as client:
        found = client.query("SELECT 1")
    with pytest.raises(InvalidError, match="names that differ"):
        found.rows()
    assert found.to_arrow().equals(twice)


def test_a_stream_that_was_cut_is_an_error_wherever_it_was_cut() -> None:
    """Also between two batches, where a reader of Arrow sees nothing missing."""
    whole = stream_of(ROWS)
    cuts = sorted({*range(0, len(whole), 40), *range(len(whole) - 9, len(whole))})
    with (
        scripted(*[rows_answer(whole[:cut]) for cut in cuts]) as server,
        Client(server.address, repeats=RepeatPolicy(attempts=1)) as client,
    ):
        for _ in cuts:
            with pytest.raises(UnavailableError):
                client.query("SELECT 1")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"records": 7}', b"null", b"\xff"])
def test_an_answer_of_another_server_is_an_error(body: bytes) -> None:
    with scripted(*[Answer(body=body)] * 3) as server, Client(server.address) as client:
        with pytest.raises(UnavailableError, match="expected an answer of a Lakelet service"):
            client.get("t", "a")
        with pytest.raises(UnavailableError, match="expected an answer of a Lakelet service"):
            client.list_tables()


def test_times_are_in_utc(zone: str) -> None:
    info = {
        "name": "t", "status": "active", "created_at": "2026-01-31T10:00:00.5Z", "last_write": "", "config": {},
    }  # fmt: skip
    record = {"id": "a", "timestamp": "2026-01-31T10:00:00.000001Z", "payload": {"n": 2**70}}
    answers = [
        Answer(document={"table_info": info, "stats": {"file_count": 2}}),
        Answer(document={"records": [record]}),
    ]
    with scripted(*answers) as server, Client(server.address) as client:
        table = client.describe_table("t")
        (found,) = client.get("t", "a")
    assert table.created_at == datetime(2026, 1, 31, 10, 0, 0, 500_000, UTC)
    assert table.last_write is None
    assert table.stats == {"file_count": 2}
    assert found.timestamp == datetime(2026, 1, 31, 10, 0, 0, 1, UTC)
    assert found.payload == {"n": 2**70}


def many(count: int) -> list[dict[str, object]]:
    return [{"id": str(place), "timestamp": "2026-01-31T10:00:00Z", "payload": {}} for place in range(count)]


def test_places_of_refused_records_count_through_all_batches() -> None:
    answers = [
        Answer(document={"written": 1, "refused": [{"place": 1, "reason": "odd"}], "rest_values": 2}),
        Answer(document={"written": 1, "refused": [{"place": 0, "reason": "odder"}]}),
        Answer(document={"written": 1}),
    ]
    with scripted(*answers) as server, Client(server.address) as client:
        found = client.write_many("t", many(5), partial=True, batch_rows=2)
    assert found == WriteAnswer(3, 2, (RefusedRecord(1, "odd"), RefusedRecord(2, "odder")))
    assert {one.path for one in server.seen} == {"/v1/data/batch?table=t&partial=true"}


def test_an_error_says_how_many_records_were_written_before() -> None:
    steps = [Answer(document={"written": 2}), problem("conflict", 409)]
    with (
        scripted(*steps) as server,
        Client(server.address) as client,
        pytest.raises(ConflictError, match="found conflict; the batches before have written 2 records"),
    ):
        client.write_many("t", many(5), batch_rows=2)
    assert len(server.seen) == 2


def test_batches_are_answered_one_by_one() -> None:
    steps = [Answer(document={"written": 2}), problem("conflict", 409)]
    with scripted(*steps) as server, Client(server.address) as client:
        answers = client.write_batches("t", many(5), batch_rows=2)
        assert next(answers).written == 2
        with pytest.raises(ConflictError):
            next(answers)


@pytest.mark.parametrize("id", ["/", "a/../b", "..", "%2F", "*", ":", "a\nb", "a\n", " ", "ü☃", "?x=1&id=2", "#", "+"])
def test_an_id_is_sent_as_it_is(id: str) -> None:
    from urllib.parse import parse_qs, urlsplit

    with (
        scripted(Answer(document={"records": []}), Answer(document={"deleted": 0})) as server,
        Client(server.address) as client,
    ):
        client.get("t", id)
        client.delete("t", id)
    for seen in server.seen:
        parts = urlsplit(seen.path)
        assert parts.path == "/v1/data/t"
        assert parse_qs(parts.query) == {"id": [id]}


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_path_is_refused(name: str) -> None:
    with Client() as client:
        for call in (client.describe_table, client.drop_table, lambda name: client.get(name, "a")):
            with pytest.raises(InvalidError, match="table"):
                call(name)


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with Client() as client, pytest.raises(InvalidError, match="surrogate"):
        client.get("t", "\ud800")
