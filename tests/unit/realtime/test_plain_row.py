"""Rows of plain values are encoded to the very bytes that Arrow's columns give, and all others are left to them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError, TooLargeError
from lakelet.realtime.row_encoder import RowEncoder
from tests.unit.realtime.written_table import WrittenTable

COLUMNS = [
    ("s", "STRING NOT NULL"),
    ("y", "BYTES NOT NULL"),
    ("b", "BOOLEAN NOT NULL"),
    ("t", "TINYINT NOT NULL"),
    ("h", "SMALLINT NOT NULL"),
    ("i", "INT NOT NULL"),
    ("l", "BIGINT NOT NULL"),
    ("d", "DOUBLE"),
    ("n", "STRING"),
    ("o", "INT"),
]
KEY = ("l", "s", "b", "y", "t", "h", "i")
TEXTS = st.text(alphabet="\x00aé\U0001f600", max_size=12)


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


ROWS = st.fixed_dictionaries(
    {
        "s": TEXTS,
        "y": st.binary(max_size=12),
        "b": st.booleans(),
        "t": whole(8),
        "h": whole(16),
        "i": whole(32),
        "l": whole(64),
        "d": st.none() | st.floats(),
        "n": st.none() | TEXTS,
        "o": st.none() | whole(32),
    }
)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> list[RowEncoder]:
    """Every column of the key is the last of a key once: text ends otherwise there."""
    made = []
    for place in range(len(KEY)):
        key = (*KEY[place + 1 :], *KEY[: place + 1])
        table = WrittenTable(tmp_path_factory.mktemp("t"), columns=COLUMNS, key=key, options={"bucket": "1"}).table
        made.append(RowEncoder(table.home, table.schema, 1 << 20))
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=ROWS)
def test_the_bytes_are_those_of_columns(encoders: list[RowEncoder], row: dict[str, Any]) -> None:
    for encoder in encoders:
        found = encoder.encode_plain(row)
        if row["d"] is not None and row["d"] != row["d"]:
            assert found is None
            continue
        (batch,) = encoder.batches([row])
        assert found is not None
        assert found == encoder.encode(batch)
        assert encoder.plain is not None
        assert encoder.plain.encode_key({name: row[name] for name in encoder.schema.primary_keys}) == found.keys[0]
        assert repr(encoder.plain.decode(found.values[0][1:])) == repr(batch.to_pylist()[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("l", 2**63),
        ("t", -129),
        ("i", True),
        ("l", None),
        ("s", None),
        ("s", b"x"),
        ("s", "\ud800"),
        ("n", "\ud800"),
        ("y", "x"),
        ("b", 1),
        ("d", 1),
        ("d", "1.5"),
        ("o", 1.0),
    ],
)
def test_other_values_are_left_to_the_columns(encoders: list[RowEncoder], name: str, value: object) -> None:
    plain = {"s": "a", "y": b"", "b": True, "t": 1, "h": 1, "i": 1, "l": 1, "d": 1.0, "n": None, "o": None}
    assert encoders[0].encode_plain(plain) is not None
    assert encoders[0].encode_plain({**plain, name: value}) is None
    assert encoders[0].encode_plain({**plain, "more": 1}) is None
    del plain[name]
    assert encoders[0].encode_plain(plain) is None
    assert encoders[0].encode_plain({**plain, "more": 1}) is None


@pytest.mark.parametrize(
    "column", ["VARCHAR(3)", "CHAR(3)", "DECIMAL(5, 1)", "DATE", "FLOAT", "BINARY(2)", "ARRAY<INT>"]
)
def test_other_columns_are_left_to_arrow(tmp_path: Path, column: str) -> None:
    table = WrittenTable(tmp_path, columns=[("id", "BIGINT NOT NULL"), ("v", column)]).table
    assert RowEncoder(table.home, table.schema, 1 << 20).encode_plain({"id": 1, "v": None}) is None


def test_partitions_are_checked_by_the_columns(tmp_path: Path) -> None:
    columns = [("id", "BIGINT NOT NULL"), ("p", "STRING NOT NULL")]
    written = WrittenTable(tmp_path, columns=columns, key=("id", "p"), partitions=("p",))
    assert RowEncoder(written.table.home, written.table.schema, 1 << 20).encode_plain({"id": 1, "p": "x"}) is None
    with written.writer() as writer, pytest.raises(InvalidError, match="255 bytes"):
        writer.put({"id": 1, "p": "x" * 300})


def test_a_plain_row_that_is_too_large_is_refused(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    with written.writer({"memtable.size": "1 kb"}) as writer:
        with pytest.raises(TooLargeError, match="more than a memtable holds"):
            writer.put({"id": 1, "v": "x" * 2000, "x": 1.0})
        writer.put({"id": 1, "v": "x", "x": 1.0})
    assert written.rows() == [(1, "x", 1.0)]


def test_a_row_in_memory_is_found_by_a_plain_key(tmp_path: Path) -> None:
    """The short way and the long way give the same, before and after a flush, of rows, deleted rows and others."""
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        writer.put({"id": 1, "v": "file", "x": None})
        writer.flush()
        writer.put({"id": 2, "v": "memory", "x": 0.5})
        writer.put({"id": 3, "v": "gone", "x": 0.5})
        writer.delete({"id": 3})
        for number in (1, 2, 3, 4):
            for columns in (None, ["x"], ["v", "id"]):
                (long_way,) = writer.get_many([{"id": number}], columns)
                assert writer.get({"id": number}, columns) == long_way
        written.table.add_column("w", "INT")
        assert writer.get({"id": 2}) == {"id": 2, "v": "memory", "x": 0.5, "w": None}
        for wrong in ({"id": None}, {"v": "memory"}, {"id": "two"}, {}, 2):
            with pytest.raises(InvalidError):
                writer.get(wrong)  # type: ignore[arg-type]
