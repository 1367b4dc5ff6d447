"""Lines that the compiled loop takes are the rows that records become one by one; all others are left to those."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, Row
from lakelet.service.ingest.fitting_rows import fitting_rows, parsed_lines
from lakelet.service.ingest.line_loop import gather_loop, line_loop
from lakelet.service.ingest.payload_schema import payload_row
from lakelet.service.ingest.plain_lines import plain_lines
from lakelet.service.ingest.record import record_of
from lakelet.service.ingest.record_columns import RecordColumns
from tests.tiers.examples import examples

TYPES = {
    "id": "STRING NOT NULL",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "payload": 'ROW<i BIGINT, big BIGINT, d DOUBLE, s STRING, b BOOLEAN, id STRING, `名 "x` BIGINT, l ARRAY<BIGINT>>',
    "payload_rest": "STRING",
    "dt": "DATE",
}
FIELDS = tuple(Field(number, name, parse_type(text)) for number, (name, text) in enumerate(TYPES.items()))
SCHEMA = TableSchema(0, FIELDS, 20, ("dt",), (), {"service.exact-integers": '["big"]'}, None, 0)
MORNING = '"2026-01-31T10:00:00Z"'


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    line_loop.load_if_enabled()
    gather_loop.load_if_enabled()
    if line_loop.compiled is None:
        pytest.skip("without numba there is no loop")


def one_by_one(body: bytes) -> pa.Table | None:
    """The rows of lines that are read one by one; None where one is refused or does not fit."""
    try:
        lines = [line for line in body.split(b"\n") if line and not line.isspace()]
        records = [record_of(msgspec.json.decode(line)) for line in lines]
        rows, misfits = RecordColumns(SCHEMA).convert(records)
    except (InvalidError, msgspec.MsgspecError, UnicodeError):
        return None
    if misfits:
        return None
    return pa.Table.from_pylist(rows, arrow_schema(FIELDS)) if isinstance(rows, list) else rows


def plain(body: bytes) -> pa.Table | None:
    """What the loop takes, in the columns of the table."""
    row = payload_row(SCHEMA)
    assert isinstance(row, Row)
    payload = arrow_schema(FIELDS).field("payload").type
    found = plain_lines(body, row, payload, frozenset(("big",)))
    if found is not None:
        found.validate(full=True)
    return None if found is None else fitting_rows(found, RecordColumns(SCHEMA))


def check(body: bytes) -> bool:
    """Whether the loop takes lines, which are then the right rows."""
    found = plain(body)
    if found is None:
        return False
    expected = one_by_one(body)
    assert expected is not None, body
    # As texts: -0.0 equals 0.0.
    assert str(found.to_pylist()) == str(expected.to_pylist()), body
    return True


def line(payload: str, moment: str = MORNING, key: str = '"k"') -> bytes:
    return f'{{"id":{key},"timestamp":{moment},"payload":{payload}}}'.encode()


PLAIN = [
    line("{}"),
    b"\n\r\n \t" + line('{"i":1}') + b" \r\n\n" + line('{"i":-2,"d":3}') + b"\n ",
    b' { "payload" : { "s" : "x" , "i" : 7 , "b" : false } , "timestamp" : ' + MORNING.encode() + b' , "id" : "a" } ',
    line('{"i":null,"l":null,"s":null,"b":null}'),
    line('{"i":9007199254740992,"big":999999999999999999}'),
    line('{"i":0,"d":0,"s":"","b":true}'),
    line('{"d":0.1}') + b"\n" + line('{"d":1e22}') + b"\n" + line('{"d":-1.5E-3}') + b"\n" + line('{"d":0.0}'),
    line('{"d":0.30000000000000004}') + b"\n" + line('{"d":1.7976931348623157e308}') + b"\n" + line('{"d":4.9e-324}'),
    line('{"d":123456789012345678901234567890.5}'),
    line('{"s":"é😀\\"\\\\\\/\\b\\f\\n\\r\\t!","名 \\"x":5,"id":"inner"}', key='"/\\n:"'),
    line("{}", '"0001-01-01T00:00:00Z"') + b"\n" + line("{}", '"9999-12-31T23:59:59.999999Z"'),
    line("{}", '"2024-02-29T23:59:59.5+05:30"') + b"\n" + line("{}", '"1969-12-31T23:59:59.000001-23:59"'),
    line("{}", key=json.dumps("x" * 1024)),
]
LEFT = [
    b"",
    line('{"i":25.0}'),
    line('{"i":1e3}'),
    line('{"i":9007199254740993}'),
    line('{"big":9223372036854775807}'),
    line('{"d":9007199254740993}'),
    line('{"d":-0}'),
    line('{"d":-0.0}'),
    line('{"d":1e400}'),
    line('{"d":1e-400}'),
    line('{"s":"\\u00e9"}'),
    line('{"s":"\\ud800"}'),
    line('{"s":"\\x"}'),
    line('{"s":"a\tb"}'),
    line('{"s":1}'),
    line('{"s":true}'),
    line('{"b":1}'),
    line('{"b":"true"}'),
    line('{"i":true}'),
    line('{"i":"1"}'),
    line('{"i":{}}'),
    line('{"l":[1]}'),
    line('{"new":1}'),
    line('{"I":1}'),
    line('{"timestamp":1}'),
    line('{"i":1,"i":1}'),
    line('{"i":01}'),
    line('{"i":+1}'),
    line('{"d":1.}'),
    line('{"d":.5}'),
    line('{"d":1e}'),
    line('{"d":NaN}'),
    line('{"i":1,}'),
    line('{,"i":1}'),
    line('{"i" 1}'),
    line('{"i":1 "d":2}'),
    line('{"i":1,,"d":2}'),
    line('{"b":nul}'),
    line('{"b":truee}'),
    line("null"),
    line("[]"),
    line('""'),
    line("{}", "null"),
    line("{}", key="null"),
    line("{}", key='""'),
    line("{}", key=json.dumps("x" * 1025)),
    line("{}") + b"}",
    line("{}") + line("{}"),
    line("{}") + b" " + line("{}"),
    line("{}") + b",",
    line("{}")[:-1],
    line("{}").replace(b",", b",\n", 1),
    line("{}").replace(b'"id":"k",', b""),
    line("{}").replace(b'"id":"k"', b'"id":"k","id":"k"'),
    line("{}").replace(b'"id"', b'"Id"'),
    line("{}").replace(b"{}", b'{},"more":1'),
    b"[" + line("{}") + b"]",
    b"\xef\xbb\xbf" + line("{}"),
    line('{"s":"x"}').replace(b"x", b"\xff"),
    line('{"s":"x"}').replace(b"x", b"\xed\xa0\x80"),
    line('{"s":"x"}').replace(b"x", b"\x00"),
    *(
        line("{}", f'"{moment}"')
        for moment in (
            *("2026-01-31", "2026-01-31T10:00Z", "2026-01-31T10:00:00", "2026-02-29T10:00:00Z", "2026-04-31T10:00:00Z"),
            *("2026-01-31T24:00:00Z", "2026-01-31T23:59:60Z", "0000-01-01T00:00:00Z", "2026-13-01T00:00:00Z"),
            *("2026-01-31T10:00:00.Z", "2026-01-31T10:00:00.1234567Z", "2026-01-31t10:00:00z", "2026-01-31 10:00:00Z"),
            *(
                "2026-01-31T10:00:00+24:00",
                "2026-01-31T10:00:00+0530",
                "2026-01-31T10:00:00+05:60",
                "1900-02-29T00:00:00Z",
            ),
            *(
                "0001-01-01T00:00:00+00:01",
                "9999-12-31T23:59:59-00:01",
                "2026-01-31T10:00:00ZZ",
                "2O26-01-31T10:00:00Z",
            ),
        )
    ),
]


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_plain_lines_are_taken(number: int) -> None:
    assert check(PLAIN[number])


@pytest.mark.parametrize("number", range(len(LEFT)))
def test_all_others_are_left(number: int) -> None:
    assert not check(LEFT[number])
    # Beside others, too.
    assert not check(line('{"i":1}') + b"\n" + LEFT[number]) or not LEFT[number]


NUMBERS = (
    st.integers(-(2**54), 2**54).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
VALUES = NUMBERS | st.text().map(json.dumps) | st.sampled_from(["true", "false", "null", "[1]", "{}"])
PAYLOADS = st.dictionaries(st.sampled_from(["i", "big", "d", "s", "b", "id", "l", "new"]), VALUES, max_size=5).map(
    lambda given: "{" + ",".join(f'"{name}":{value}' for name, value in given.items()) + "}"
)
DOUBLES = NUMBERS.map(lambda text: f'{{"d":{text}}}')


@settings(max_examples=examples(200))
@given(st.lists(PAYLOADS | DOUBLES, min_size=1, max_size=4))
def test_lines_are_the_rows_that_records_become(payloads: list[str]) -> None:
    check(b"\n".join(map(line, payloads)))


@settings(max_examples=examples(60))
@given(st.integers(0, 2**40))
def test_damaged_lines_are_no_other_rows(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        body = bytearray(b"\n".join(rng.choices([one for one in PLAIN if len(one) < 500], k=2)))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(body))
            body[at : at + rng.randint(0, 2)] = rng.choices(
                rb'{}[]",:\/ 0159eE+-.tfnuZT' + b"\n\r\t\x00\xff", k=rng.randint(0, 2)
            )
            body = body or bytearray(b" ")
        check(bytes(body))


def test_a_served_batch_goes_through_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    run = line_loop.compiled
    assert run is not None
    monkeypatch.setattr(line_loop, "compiled", lambda *given: (calls.append(given), run(*given)))
    fields = (*FIELDS[:2], Field(2, "payload", parse_type("ROW<i BIGINT, d DOUBLE>")))
    assert parsed_lines(PLAIN[1], TableSchema(0, fields, 9, (), (), {}, None, 0)) is not None
    assert len(calls) == 1
