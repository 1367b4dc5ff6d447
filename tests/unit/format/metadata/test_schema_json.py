"""Schema files."""

import json

import pytest

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.metadata.schema_json import decode_schema, encode_schema
from lakelet.model.schema import new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field

TYPES = [
    "BIGINT NOT NULL",
    "DECIMAL(10, 2)",
    "ARRAY<INT NOT NULL>",
    "MAP<STRING, ROW<a INT, b TIMESTAMP(3)>>",
    "MULTISET<STRING> NOT NULL",
]


def test_round_trip_and_members() -> None:
    fields = [
        Field(-1, f"c{index}", parse_type(text), "é" if index else None, "7" if text.startswith("DEC") else None)
        for index, text in enumerate(TYPES)
    ]
    schema = new_schema(
        fields, partition_keys=["c0"], primary_keys=[], options={"bucket": "-1"}, comment="all", time_ms=5
    )
    data = encode_schema(schema)
    assert decode_schema(data, path="s") == schema
    value = json.loads(data)
    assert list(value) == [
        "version",
        "id",
        "fields",
        "highestFieldId",
        "partitionKeys",
        "primaryKeys",
        "options",
        "comment",
        "timeMillis",
    ]
    assert value["fields"][0] == {"id": 0, "name": "c0", "type": "BIGINT NOT NULL"}
    assert value["fields"][1] == {
        "id": 1,
        "name": "c1",
        "type": "DECIMAL(10, 2)",
        "description": "é",
        "defaultValue": "7",
    }
    assert value["fields"][2]["type"] == {"type": "ARRAY", "element": "INT NOT NULL"}
    assert value["fields"][3]["type"]["value"] == {
        "type": "ROW",
        "fields": [{"id": 4, "name": "a", "type": "INT"}, {"id": 5, "name": "b", "type": "TIMESTAMP(3)"}],
    }
    assert value["fields"][4]["type"] == {"type": "MULTISET NOT NULL", "element": "STRING"}


def test_members_that_others_leave_out_or_add() -> None:
    value = {
        "id": 0,
        "fields": [],
        "highestFieldId": -1,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
        "extra": 1,
    }
    oldest = decode_schema(json.dumps(value).encode(), path="s")
    assert oldest.options == {"bucket": "1", "file.format": "orc"}
    second = decode_schema(json.dumps({**value, "version": 2, "comment": None}).encode(), path="s")
    assert second.options == {"file.format": "orc"}
    assert second.comment is None
    assert decode_schema(json.dumps({**value, "version": 3}).encode(), path="s").options == {}


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(InvalidError, match=r"dir/schema-0: schema format version 4 is newer than 3"):
        decode_schema(b'{"version": 4}', path="dir/schema-0")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"7", b"{}", b'{"id": 0}', b"\xff\xfe", b'{"id": "x", "fields": [], "options": {}}'],
)
def test_broken_files_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/schema-0"):
        decode_schema(data, path="dir/schema-0")


def test_a_type_that_is_not_known_is_named_with_its_file() -> None:
    value = {"version": 3, "id": 0, "fields": [{"id": 0, "name": "a", "type": "NUMBER"}], "highestFieldId": 0}
    value |= {"partitionKeys": [], "primaryKeys": [], "options": {}}
    with pytest.raises(InvalidError, match="dir/schema-0: type 'NUMBER'"):
        decode_schema(json.dumps(value).encode(), path="dir/schema-0")
