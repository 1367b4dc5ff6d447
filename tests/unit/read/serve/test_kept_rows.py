"""Rows that were found are kept within their bytes, those in use longest, and belong to nobody else than their callers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.catalog.lake import Lake
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.serve.kept_rows import ABSENT, KeptRows
from lakelet.read.serve.served_file import ServedFile
from lakelet.storage.memory import MemoryStore

MOST = 1 << 17


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    BLOCKS.clear()
    lake = Lake(MemoryStore("kept rows"))
    lake.create_database("d")
    yield lake
    BLOCKS.clear()


def key(number: int) -> bytes:
    return f"{number:08}".encode()


def found(rows: KeptRows, one: bytes) -> object:
    return rows.find(one)


def test_what_is_used_stays_and_all_is_within_its_bytes() -> None:
    rows = KeptRows(MOST)
    for number in range(20_000):
        one = key(number)
        if found(rows, one) is None:
            rows.add(one, {"k": number, "v": "v" * 100})
        # A key that is asked for now and then among many that come once, or twice.
        assert number == 0 or found(rows, key(0)) == {"k": 0, "v": "v" * 100}
        rows.add(one, {"k": number, "v": "v" * 100})
        assert rows.nbytes <= MOST
    assert found(rows, key(19_999)) is not None
    assert found(rows, key(5_000)) is None


def test_keys_that_come_once_displace_nothing() -> None:
    rows = KeptRows(MOST)
    for number in range(400):
        rows.add(key(number), b"v" * 100)
    assert rows.nbytes > MOST // 2
    held = [number for number in range(400) if found(rows, key(number)) is not None]
    for number in range(1000, 9000):
        rows.add(key(number), ABSENT)
    assert sum(found(rows, key(number)) is not None for number in held) > len(held) * 9 // 10


def test_a_key_is_counted_once() -> None:
    rows = KeptRows(MOST)
    rows.add(key(1), b"v")
    once = rows.nbytes
    for _ in range(3):
        rows.add(key(1), b"v")
        assert (rows.find(key(1)), rows.nbytes) == (b"v", once)


def test_the_cache_is_told_rarely_and_never_too_little() -> None:
    rows, told, known = KeptRows(1 << 22), 0, 0
    for number in range(8_000):
        rows.add(key(number), b"v" * 100)
        weight = rows.weigh()
        if weight is not None:
            told, known = told + 1, weight
        assert rows.nbytes <= known <= 1 << 22
    assert told < 10


def test_a_row_is_the_callers_own(lake: Lake) -> None:
    table = lake.create_table(
        "d.t", [("id", "INT NOT NULL"), ("v", "STRING")], primary_key=["id"], options={"bucket": "1"}
    )
    table.write([{"id": number, "v": f"v{number}"} for number in range(100)])
    with table.lookup() as lookup:
        for _ in range(3):
            row = lookup.get({"id": 7})
            assert row == {"id": 7, "v": "v7"}
            row["v"] = "changed"
            row["more"] = 1
            assert lookup.get({"id": 700}) is None


def test_rows_stay_when_others_are_put_into_the_cache(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table(
        "d.t", [("id", "INT NOT NULL"), ("v", "INT")], primary_key=["id"], options={"bucket": "1"}
    )
    table.write([{"id": number, "v": number} for number in range(100)])
    with table.lookup() as lookup:
        for _ in range(2):
            assert lookup.get({"id": 7}) == {"id": 7, "v": 7}
        monkeypatch.setattr(ServedFile, "_found_row", lambda *_: pytest.fail("the row is kept"))
        BLOCKS.put("another", "value", 1, limit=1 << 28)
        assert lookup.get({"id": 7}) == {"id": 7, "v": 7}
        assert lookup.get_many([{"id": 7}]) == [{"id": 7, "v": 7}]


def test_bytes_null_and_absent_keys(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [("k", "STRING NOT NULL"), ("a", "STRING"), ("b", "BYTES")]
    table = lake.create_table("d.t", columns, primary_key=["k"], options={"bucket": "1"})
    table.write([{"k": "one", "a": "é", "b": b""}, {"k": "two", "a": None, "b": b"b"}])
    looked: list[bytes] = []
    before = ServedFile._found_bytes
    with table.lookup() as lookup:
        for turn in range(4):
            if turn == 3:
                monkeypatch.setattr(
                    ServedFile, "_found_bytes", lambda self, one, at: (looked.append(one), before(self, one, at))[1]
                )
            assert [lookup.get_bytes(one, "a") for one in (b"one", b"two", b"six")] == ["é".encode(), None, None]
            assert [lookup.get_bytes(one, "b") for one in (b"one", b"two", b"six")] == [b"", b"b", None]
            assert lookup.get({"k": "one"}) == {"k": "one", "a": "é", "b": b""}
            assert lookup.get({"k": "two"}, columns=["b"]) == {"b": b"b"}
    assert looked == []


def test_a_small_cache_keeps_no_rows_and_holds_its_limit(lake: Lake) -> None:
    for most in ("100 kb", "1 mb"):
        table = lake.create_table(
            f"d.t{most[0]}{most[-2]}",
            [("id", "INT NOT NULL"), ("v", "STRING")],
            primary_key=["id"],
            options={"bucket": "1", "lookup.cache-max-memory-size": most},
        )
        table.write([{"id": number, "v": "v" * 50} for number in range(5000)])
        limit = (100 << 10) if most == "100 kb" else 1 << 20
        BLOCKS.clear()
        with table.lookup() as lookup:
            for number in (*range(5000), *range(0, 5000, 7), *range(0, 5000, 7)):
                assert lookup.get({"id": number}) == {"id": number, "v": "v" * 50}
                assert BLOCKS.weight <= limit
