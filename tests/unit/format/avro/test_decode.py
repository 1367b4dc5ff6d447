"""Decoding: equal to fastavro, projected, damaged, in growing buffers and in threads."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro import decode, decode_batches, encode
from lakelet.format.avro.container import write_block, write_header, write_varint
from lakelet.format.avro.program import compile_program
from tests.tiers.examples import examples

SYNC = bytes(16)


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def encoded(schema: dict[str, Any], payload: bytes, rows: int = 1) -> bytes:
    header = write_header(json.dumps(schema), codec="null", sync=SYNC, metadata={})
    return header + write_block(payload, rows=rows, codec="null", level=None, sync=SYNC)


def test_manifests_equal_fastavro(
    engine: str, entry_schema: dict[str, Any], make_entries: Callable[..., Any], by_fastavro: Callable[..., bytes]
) -> None:
    entries = make_entries(700)
    for codec in ("null", "deflate", "zstandard"):
        array = decode(by_fastavro(entry_schema, entries, codec=codec), path="m")
        array.validate(full=True)
        assert array.to_pylist() == entries


@pytest.mark.parametrize("null_first", [True, False])
def test_rows_may_stand_in_a_union_with_null(engine: str, null_first: bool) -> None:
    """The native library of pypaimon writes its manifests so; a row that is null is damage."""
    schema = ["null", record(a="int")] if null_first else [record(a="int"), "null"]
    row, null = (b"\x02", b"\x00") if null_first else (b"\x00", b"\x02")
    header = write_header(json.dumps(schema), codec="null", sync=SYNC, metadata={})

    def file(payload: bytes) -> bytes:
        return header + write_block(payload, rows=2, codec="null", level=None, sync=SYNC)

    assert decode(file(row + b"\x0a" + row + b"\x01"), path="m").to_pylist() == [{"a": 5}, {"a": -1}]
    with pytest.raises(CorruptionError, match="branch"):
        decode(file(row + b"\x0a" + null + b"\x00"), path="m")


def test_projection_selects_subtrees(
    engine: str, entry_schema: dict[str, Any], make_entries: Callable[..., Any], by_fastavro: Callable[..., bytes]
) -> None:
    entries = make_entries(200)
    data = by_fastavro(entry_schema, entries)
    columns = [
        "_KIND",
        "_FILE._FILE_NAME",
        "_FILE._VALUE_STATS",
        "_FILE._WRITE_COLS",
        "_NEVER",
        "_FILE._NEVER",
        "_BUCKET.x",
    ]
    array = decode(data, path="m", columns=columns)
    names = ["_FILE_NAME", "_VALUE_STATS", "_WRITE_COLS"]
    assert array.to_pylist() == [
        {"_KIND": entry["_KIND"], "_FILE": {name: entry["_FILE"][name] for name in names}} for entry in entries
    ]
    assert decode(data, path="m", columns=[]).to_pylist() == [{}] * 200


def test_projection_passes_through_arrays_and_optional_records(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    inner = {
        "type": "record",
        "name": "range",
        "fields": [{"name": "f0", "type": "string"}, {"name": "f1", "type": "int"}],
    }
    schema = record(
        a=["null", {"type": "array", "items": ["null", inner]}], m={"type": "map", "values": "range"}, z="int"
    )
    rows = [
        {"a": [{"f0": "x", "f1": 1}, None, {"f0": "y", "f1": 2}], "m": {"k": {"f0": "q", "f1": 3}}, "z": 1},
        {"a": None, "m": {}, "z": 2},
        {"a": [], "m": {}, "z": 3},
    ]
    data = by_fastavro(schema, rows)
    assert decode(data, path="f", columns=["a.f1", "m.f0"]).to_pylist() == [
        {"a": [{"f1": 1}, None, {"f1": 2}]},
        {"a": None},
        {"a": []},
    ]
    assert decode(data, path="f", columns=["m", "z"]).to_pylist() == [
        {"m": [("k", {"f0": "q", "f1": 3})], "z": 1},
        {"m": [], "z": 2},
        {"m": [], "z": 3},
    ]


def test_storage_types_and_nullability(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    fixed = {"type": "fixed", "name": "md5", "size": 3}
    enum = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
    schema = record(
        i="int", l=["long", "null"], f="float", d="double", b="boolean", s="string", y="bytes",
        x=fixed, e=["null", enum], one=["int"], n="null", m={"type": "map", "values": ["null", "int"]},
        again=["null", "md5"], date={"type": "int", "logicalType": "date"},
    )  # fmt: skip
    row = {"i": 1, "l": None, "f": 0.5, "d": float("inf"), "b": True, "s": "ü", "y": b"\xff", "x": b"abc", "e": "B",
           "one": 7, "n": None, "m": {"k": None}, "again": b"xyz", "date": 3}  # fmt: skip
    array = decode(by_fastavro(schema, [row, {**row, "e": None, "again": None, "l": 5, "b": False}]), path="f")
    assert array.to_pylist()[0] == {**row, "m": [("k", None)]}
    assert array.to_pylist()[1] == {**row, "m": [("k", None)], "e": None, "again": None, "l": 5, "b": False}
    types = {field.name: (field.type, field.nullable) for field in array.type}
    assert types["i"] == (pa.int32(), False)
    assert types["l"] == (pa.int64(), True)
    assert types["x"] == (pa.binary(3), False)
    assert types["e"] == (pa.string(), True)
    assert types["m"] == (pa.map_(pa.string(), pa.field("value", pa.int32())), False)
    assert types["date"] == (pa.int32(), False)


def test_sized_runs_of_items_are_read_and_skipped(engine: str) -> None:
    items = bytes([2, 4])
    run = write_varint(-2) + write_varint(2) + items
    payload = run + write_varint(1) + bytes([6]) + b"\x00" + bytes([10])
    data = encoded(record(a={"type": "array", "items": "long"}, z="int"), payload)
    assert decode(data, path="f").to_pylist() == [{"a": [1, 2, 3], "z": 5}]
    assert decode(data, path="f", columns=["z"]).to_pylist() == [{"z": 5}]


def test_buffers_grow_when_later_rows_are_larger(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    nested = {"type": "array", "items": {"type": "array", "items": ["null", "string"]}}
    schema = record(
        a=nested, s=["null", "bytes"], f={"type": "array", "items": {"type": "fixed", "name": "x", "size": 5}}
    )
    rows: list[dict[str, Any]] = [{"a": [], "s": None, "f": []} for _ in range(100)]
    rows += [{"a": [["x" * i, None]] * i, "s": b"y" * 5000, "f": [b"12345"] * i} for i in range(60)]
    rows += [{"a": [], "s": b"z" * 300_000, "f": []}, rows[0]]
    assert decode(by_fastavro(schema, rows), path="f").to_pylist() == rows


def test_batches_split_at_blocks(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    data = by_fastavro(record(s="string"), [{"s": f"{i:09}"} for i in range(1000)], sync_interval=1000)
    batches = list(decode_batches(data, path="f", batch_bytes=2500))
    assert len(batches) > 3
    assert pa.concat_arrays(batches).equals(decode(data, path="f"))
    assert decode(data, path="f").field("s").to_pylist() == [f"{i:09}" for i in range(1000)]


def test_threads_decode_at_once(engine: str, by_fastavro: Callable[..., bytes]) -> None:
    files = [
        by_fastavro(record(n="long", s="string"), [{"n": i * k, "s": str(k)} for i in range(500)]) for k in range(8)
    ]
    with ThreadPoolExecutor(4) as pool:
        arrays = list(pool.map(lambda data: decode(data, path="f"), files))
    for k, array in enumerate(arrays):
        assert array.field("n").to_pylist() == [i * k for i in range(500)]


def test_compiled_schemas_are_memoised() -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
    assert compile_program(text, ["n"]) is compile_program(text, ("n",))
    assert compile_program(text, ["n"]) is not compile_program(text)


STRINGS = record(a="string")
WRONG: dict[str, tuple[dict[str, Any], bytes]] = {
    "negative length": (STRINGS, write_varint(-1)),
    "length past the end": (STRINGS, write_varint(2) + b"x"),
    "not UTF-8": (STRINGS, b"\x02\xff"),
    "branch 2": (record(a=["null", "int"]), b"\x04\x00"),
    "negative branch": (record(a=["null", "int"]), b"\x01\x00"),
    "branch of one": (record(a=["int"]), b"\x02\x00"),
    "boolean 2": (record(a="boolean"), b"\x02"),
    "boolean of two bytes": (record(a="boolean"), b"\x80\x00"),
    "symbol 2": (record(a={"type": "enum", "name": "e", "symbols": ["A", "B"]}), b"\x04"),
    "symbol -1": (record(a={"type": "enum", "name": "e", "symbols": ["A", "B"]}), b"\x01"),
    "short double": (record(a="double"), bytes(7)),
    "short fixed": (record(a={"type": "fixed", "name": "x", "size": 4}), bytes(3)),
    "endless array": (record(a={"type": "array", "items": "int"}), write_varint(2**62) + bytes(20)),
    "array without end": (record(a={"type": "array", "items": "int"}), b"\x04\x02\x02"),
    "least count": (record(a={"type": "array", "items": "int"}), write_varint(-(2**63)) + bytes(20)),
    "run too long": (record(a={"type": "array", "items": "int"}), write_varint(-1) + write_varint(99) + bytes(20)),
    "negative run": (record(a={"type": "array", "items": "int"}), write_varint(-1) + write_varint(-9) + bytes(20)),
    "map without value": (record(a={"type": "map", "values": "int"}), b"\x02\x02k"),
}


@pytest.mark.parametrize("name", list(WRONG))
@pytest.mark.parametrize("columns", [None, []], ids=["read", "skipped"])
def test_wrong_rows_are_corruption(engine: str, name: str, columns: list[str] | None) -> None:
    # A value that is skipped is not looked at, only its length is.
    lenient = ("not UTF-8", "boolean 2", "symbol 2", "symbol -1")
    data = encoded(WRONG[name][0], WRONG[name][1])
    if columns is not None and name in lenient:
        assert len(decode(data, path="dir/f", columns=columns)) == 1
        return
    if columns is not None and name == "boolean of two bytes":
        return
    with pytest.raises(CorruptionError, match="dir/f"):
        decode(data, path="dir/f", columns=columns)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (["null", "int", "string"], "unions"),
        (["int", "string"], "unions"),
        ("missing", "unknown type"),
        ({"type": "array", "items": "null"}, "without bytes"),
        ({"type": "fixed", "name": "x", "size": 0}, "not 0"),
        ({"type": "record", "name": "loop", "fields": [{"name": "next", "type": ["null", "loop"]}]}, "recursive"),
    ],
)
def test_schemas_that_columns_cannot_hold_are_refused(kind: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=f"dir/f: .*{message}"):
        decode(encoded(record(a=kind), b""), path="dir/f")


def test_a_header_that_is_no_schema_is_corruption() -> None:
    for text in ('{"type":"record","name":"r","fields":[{"nome":"a"}]}', "{"):
        with pytest.raises(CorruptionError, match="dir/f"):
            decode(write_header(text, codec="null", sync=SYNC, metadata={}), path="dir/f")


@cache
def _small_manifest(schema_text: str, make: Callable[..., Any]) -> bytes:
    schema = json.loads(schema_text)
    rows = pa.array(make(6), compile_program(schema_text).root.type)
    return encode(rows, schema, codec="null", sync=SYNC)


@settings(deadline=None, max_examples=examples(150))
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 4))
def test_damaged_bytes_never_escape_the_block(
    engine: str, entry_schema: dict[str, Any], make_entries: Callable[..., Any], seed: int, changes: int
) -> None:
    """Interpreted, an access out of bounds is an IndexError; the compiled code is the same function."""
    pick = random.Random(seed)
    data = bytearray(_small_manifest(json.dumps(entry_schema), make_entries))
    for _ in range(changes):
        data[pick.randrange(1, len(data) - 16)] = pick.choice([0, 1, 2, 127, 128, 255, pick.randrange(256)])
    columns = pick.choice([None, ["_FILE._FILE_NAME"], ["_KIND", "_FILE._WRITE_COLS"]])
    try:
        decode(bytes(data), path="m", columns=columns).validate(full=True)
    except (CorruptionError, InvalidError) as error:
        found = str(error)
    else:
        found = "m: nothing"
    assert found.startswith("m: ")
