"""The scanner of events: what it is sure of is what every JSON parser reads, everything else it leaves."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from lakelet.format.compiled.compile_cache import has_numba
from lakelet.spark.cdc.scan import event_scan
from lakelet.spark.cdc.scan.event_batch import event_batches
from tests.spark.cdc.sample_events import FIELDS, canal, debezium, maxwell, text

ROW = {"id": 1, "q": "x"}
_KERNEL = ("_function", "_signature", "_inner")


def scanned(
    format: str, events: list[object], keys: list[bytes | None] | None = None, *, whole: bool = False
) -> list[dict[str, Any]]:
    raw = [one if one is None or isinstance(one, bytes) else text(one).encode() for one in events]
    size = len(raw)
    columns = {
        "raw": pa.array(raw, pa.binary()),
        "message_key": pa.array(keys or [None] * size, pa.binary()),
        "topic": pa.nulls(size, pa.string()),
        "partition": pa.nulls(size, pa.int32()),
        "offset": pa.array(range(size), pa.int64()),
        "kafka_timestamp": pa.nulls(size, pa.timestamp("us", "UTC")),
    }
    [found] = event_batches([pa.RecordBatch.from_pydict(columns)], format, whole=whole)
    lines: list[dict[str, Any]] = found.to_pylist()
    return lines


def test_an_event_of_debezium() -> None:
    events: list[object] = [debezium("c", None, ROW, fields=FIELDS[:1]), None, debezium("u", ROW, {**ROW, "q": "y"})]
    first, tombstone, last = scanned("debezium", events, [b'{"id":1}', b'{"id":1}', b'{"id":1}'])
    assert (first["operation"], json.loads(first["image"]), first["old"]) == ("i", ROW, None)
    assert (first["position"], first["op_millis"]) == ("00000000000024023128", 1704067200000)
    database, schema, table, layout, keys = json.loads(first["told"])
    assert (database, schema, table, json.loads(keys)) == ("shop", "public", "item", ["id"])
    assert json.loads(layout)["fields"][1]["fields"] == FIELDS[:1]
    assert (tombstone["operation"], tombstone["unsure"]) == (None, False)
    assert (last["operation"], json.loads(last["old"])) == ("u", ROW)
    assert json.loads(json.loads(last["told"])[3]) == ["id", "q"]
    assert {one["raw"] for one in (first, tombstone, last)} == {None}


def test_rows_of_canal() -> None:
    rows = [{"id": "1"}, {"id": "2"}, {"id": "3"}]
    events: list[object] = [
        canal("UPDATE", rows, old=[{"id": "9"}, {}]),
        canal("INSERT", rows[:1]),
        canal("DELETE", []),
    ]
    found = scanned("canal", events)
    assert [(one["offset"], one["row_index"], one["unsure"]) for one in found] == [
        *((0, place, False) for place in range(3)),
        (1, 0, False),
        (2, 0, True),
    ]
    assert [one["old"] for one in found] == [b'{"id":"9"}', b"{}", None, None, None]
    assert [one["told"] is not None for one in found] == [True, False, False, False, False]


def test_places_in_a_log() -> None:
    events: list[object] = [
        debezium("c", None, ROW, lsn=None, file="bin.000012", pos=4, row=1),
        debezium("c", None, ROW, lsn=None, file="bin", pos=4),
        debezium("c", None, ROW, lsn=None),
        debezium("c", None, ROW, lsn=None, change_lsn="0001"),
        debezium("c", None, ROW, lsn="7"),
    ]
    four, nothing = "0" * 19 + "4", "0" * 20
    assert [one["position"] for one in scanned("debezium", events)] == [
        f"bin.{'0' * 18}12:{four}:{'0' * 19}1",
        f"bin:{four}:{nothing}",
        None,
        None,
        None,
    ]
    found = scanned(
        "maxwell", [maxwell("insert", ROW), maxwell("insert", ROW, xoffset=3), maxwell("insert", ROW, xid=None)]
    )
    seconds, xid = "00000000001704067200", "00000000000000023396"
    assert [one["position"] for one in found] == [
        f"{seconds}:{xid}:0{2**62}",
        f"{seconds}:{xid}:{'0' * 19}3",
        f"{seconds}:",
    ]


ODD = (
    *(
        b"",
        b"junk",
        b"7",
        b"[]",
        b"{}",
        b"null",
        b'{"op":"c"',
        b"\xff",
        b'{"op":"c"} x',
        b'{"op":"c",}',
        b'{"op":"c"}{}',
    ),
    *(
        '"\\ud800"',
        '"\\x"',
        '"\\u12"',
        '"a\tb"',
        "'x'",
        "NaN",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e999",
        "[1]",
        "{}",
        "tru",
        "nul",
    ),
    *("1" * 39, '"x', "\\u0031", "/* c */ 1", "0x1", "True"),
)


@pytest.mark.parametrize("format", ["debezium", "canal", "maxwell"])
def test_what_is_odd_is_left(format: str) -> None:
    """As a whole event, as the value of a column, and with bytes that are no UTF-8."""
    good: dict[str, Any] = {
        "debezium": debezium("c", None, {"id": "MARK"}),
        "canal": canal("INSERT", [{"id": "MARK"}]),
        "maxwell": maxwell("insert", {"id": "MARK"}),
    }[format]
    whole = text(good).encode()
    events: list[object] = [one if isinstance(one, bytes) else whole.replace(b'"MARK"', one.encode()) for one in ODD]
    events += [
        whole.replace(b"MARK", b"\xc3"),
        whole.replace(b"MARK", b"\xed\xa0\x80"),
        whole.replace(b"MARK", b"\xc0\x80"),
    ]
    events += [whole.replace(b'"id":"MARK"', b'"id":1,"id":2'), whole.replace(b'"id"', b'"i\\u0064"'), whole + b"\0"]
    events += [whole.replace(b'"table":', b'"table":"a","table":'), whole.replace(b'"item"', b'"\\u0069tem"')]
    found = scanned(format, events)
    assert [one["raw"] for one in found if not one["unsure"]] == []
    assert [one["raw"] for one in found] == events
    assert not scanned(format, [whole])[0]["unsure"]


def test_a_row_is_what_json_says() -> None:
    """Random events, of which some bytes were changed: what the scanner is sure of has one meaning."""
    chosen = random.Random("events")
    values = [1, -5, 2.5, "x", 'ä\n"\\', "日本", None, True, False, "", 10**17, "\U0001f600"]
    events: list[object] = []
    for place in range(1500):
        row = {name: chosen.choice(values) for name in chosen.sample(["id", "q", "Id", "n. b", "ü"], 3)}
        event = debezium("u" if place % 3 else "c", row if place % 3 else None, row, lsn=place)
        plain = json.dumps(event, ensure_ascii=bool(place % 2), indent=chosen.choice([None, None, 1])).encode()
        if place % 4 == 0:
            at = chosen.randrange(len(plain))
            plain = plain[:at] + bytes([chosen.randrange(256)]) + plain[at + chosen.randrange(2) :]
        events.append(plain)
    sure = 0
    for event, line in zip(events, scanned("debezium", events, whole=True), strict=True):
        assert line["raw"] == event
        if line["unsure"]:
            continue
        sure += 1
        assert isinstance(event, bytes)
        meant = json.loads(event.decode())
        assert json.loads(line["image"]) == meant["after"]
        assert (None if line["old"] is None else json.loads(line["old"])) == (
            meant.get("before") if meant["op"] == "u" else None
        )
        lsn = meant["source"].get("lsn")
        assert line["position"] == (None if lsn is None else str(lsn).rjust(20, "0"))
    assert sure > 600


def test_machine_code_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = [debezium("u", ROW, {**ROW, "q": "é" * n}, fields=FIELDS[:2], lsn=n) for n in range(50)]
    events += [text(events[0]).encode()[:-n] for n in range(1, 60)]
    monkeypatch.setenv("LAKELET_NO_NUMBA", "1")
    expected = scanned("debezium", events)
    monkeypatch.delenv("LAKELET_NO_NUMBA")
    if not has_numba():
        pytest.skip("no numba")
    monkeypatch.setattr(event_scan, "INTERPRETED_BYTES", 0)
    assert scanned("debezium", events) == expected


@pytest.mark.parametrize("interpreted", [True, False])
def test_a_schema_is_known_by_all_of_its_bytes(monkeypatch: pytest.MonkeyPatch, interpreted: bool) -> None:
    if interpreted:
        monkeypatch.setenv("LAKELET_NO_NUMBA", "1")
    elif not has_numba():
        pytest.skip("no numba")
    monkeypatch.setattr(event_scan, "INTERPRETED_BYTES", 0)
    monkeypatch.setattr(event_scan, "_scan", event_scan.Kernel(*(getattr(event_scan._scan, one) for one in _KERNEL)))
    # Of one size, each with one letter that no other has in its place.
    notes = ["".join("b" if place == other else "a" for place in range(200)) for other in range(-1, 200)]
    events: list[object] = []
    for note in notes:
        events += [debezium("c", None, ROW, fields=[{"field": "id", "type": "int64", "doc": note}])] * 2
    found = scanned("debezium", events)
    assert not any(line["unsure"] for line in found)
    told = [json.loads(json.loads(line["told"])[3]) for line in found if line["told"] is not None]
    assert [one["fields"][0]["fields"][0]["doc"] for one in told] == notes
    hashes = [line["group_hash"] for line in found]
    assert hashes[::2] == hashes[1::2]
    assert len(set(hashes)) == len(notes)
